"""The lab's models and their runs, cached within bounds; one model serves all sessions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

from asking.hub import LabInput, Shelf, Wanted
from pages.model_lab.patience import Arrived
from ui.compute import computed
from ui.models import runner
from ui.words import load_words
from viz_core.hub import HubCard, HubRun, Positions
from viz_core.view.map_group import MapGroup

CURATED = (
    "google-bert/bert-base-uncased",
    "openai-community/gpt2",
    "Qwen/Qwen3-0.6B",
    "Helsinki-NLP/opus-mt-en-de",
    "google-t5/t5-small",
    "facebook/dinov2-small",
    "google/vit-base-patch16-224",
)
"""Small models of every kind, all with safetensors, offered where no host says otherwise."""


@st.cache_data(max_entries=4, ttl=20, show_spinner=False)
def models_here(folders: tuple[Path, ...]) -> tuple[str, ...]:  # noqa: ARG001  # others hold other models
    """The names of what can be loaded without a network; looked up anew every so many seconds."""
    names: tuple[str, ...] = runner().about(Shelf(), "names")
    return names


def hub_card(wanted: Wanted, arrived: Arrived) -> HubCard:
    """What there is to know of a model, once it is loaded.

    Raises:
        HubError: if it cannot be had or run here.
        ValueError: if ATLAS_DEVICE names a device that is not here.
    """
    runner().load(wanted, arrived)
    card: HubCard = runner().about(wanted, "card")
    return card


@computed()
def hub_schemes(wanted: Wanted) -> tuple[Positions, ...]:
    """A model's position schemes, with the numbers it really uses."""
    schemes: tuple[Positions, ...] = runner().about(wanted, "schemes")
    return schemes


@computed()
def hub_run(asked: LabInput) -> HubRun:
    """A run with its trace; nothing in it changes, so sessions that ask the same share it.

    Raises:
        HubError: if this is no input for this model.
    """
    return runner().run(asked)


@computed()
def hub_maps(asked: LabInput, language: str) -> tuple[MapGroup, ...]:
    """The maps of a run as an attention view shows them; they keep their thumbnails."""
    return runner().groups(asked, load_words("model-lab", language).group("view"))


@computed("measuring")
def hub_look(asked: LabInput, question: str, *arguments: Any) -> Any:
    """The answer to one of `LabInput.looks` about a run."""
    return runner().look(asked, question, *arguments)
