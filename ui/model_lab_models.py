"""The lab's models and their runs, cached within bounds; one model serves all sessions."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import streamlit as st
from PIL import Image

from hosting.settings import settings
from ui.compute import computed
from ui.model_lab_patience import Arrived
from ui.words import load_words
from viz_core.claims import future_weight, row_sum_error
from viz_core.figures.map_group import MapGroup
from viz_core.figures.model_lab_maps import hub_groups
from viz_core.hub import HubError, HubModel, HubRun, LocalModel, Sampling, find_folder, load_hub, local_models

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

CLAIMED_ROWS = 256
"""So many rows of each map are held to the claims."""


@dataclass(frozen=True)
class Wanted:
    """Which model: a name with a revision ("" for the newest), or a folder; `here`: ask nobody for it."""

    name: str
    revision: str = ""
    folder: str = ""
    here: bool = False


@dataclass(frozen=True)
class Asked:
    """What a model is given, in small values: a picture by its digest."""

    text: str = ""
    pair: str = ""
    target: str = ""
    digest: str = ""
    new_tokens: int = 0
    sampling: Sampling = Sampling()  # noqa: RUF009  # frozen


@st.cache_data(max_entries=4, ttl=20, show_spinner=False)
def models_here(folders: tuple[Path, ...]) -> tuple[LocalModel, ...]:
    """What can be loaded without a network; looked up anew every so many seconds."""
    return local_models(folders)


@st.cache_resource(max_entries=2, show_spinner=False)
def hub_model(wanted: Wanted, _arrived: Arrived) -> HubModel:
    """A model, loaded once for everybody.

    Raises:
        HubError: if it cannot be had or run here.
        ValueError: if ATLAS_DEVICE names a device that is not here.
    """
    allowed = settings()
    if wanted.folder:
        folder = find_folder(wanted.folder, allowed.model_folders)
        return load_hub(folder, memory_budget=allowed.model_memory)
    # Whoever runs this at home may use their own access to private models; visitors of a host may not.
    token = False if allowed.chosen_only else None
    return load_hub(
        wanted.name,
        wanted.revision or None,
        folders=allowed.model_folders,
        memory_budget=allowed.model_memory,
        offline=wanted.here,
        token=token,
        progress=_arrived,
    )


@computed()
def hub_run(wanted: Wanted, asked: Asked, _image: Image.Image | None) -> HubRun:
    """A run with its trace; nothing in it changes, so sessions that ask the same share it.

    Raises:
        HubError: if this is no input for this model.
    """
    allowed = settings()
    longest = max(len(asked.text), len(asked.pair), len(asked.target))
    if allowed.max_characters is not None and longest > allowed.max_characters:
        most = f"at most {allowed.max_characters:,} are allowed here"
        raise HubError(f"This text has {longest:,} characters; {most}. Shorten it.")
    return hub_model(wanted, Arrived()).run(
        None if _image is not None else asked.text,
        text_pair=asked.pair or None,
        target=asked.target or None,
        image=_image,
        max_new_tokens=asked.new_tokens,
        sampling=asked.sampling,
        max_tokens=allowed.max_tokens,
        max_seconds=allowed.max_seconds,
    )


@computed()
def hub_maps(wanted: Wanted, asked: Asked, language: str, _image: Image.Image | None) -> tuple[MapGroup, ...]:
    """The maps of a run as an attention view shows them; they keep their thumbnails."""
    return hub_groups(hub_run(wanted, asked, _image), load_words("model-lab", language).group("view"))


@computed("measuring")
def hub_residuals(wanted: Wanted, asked: Asked, _image: Image.Image | None) -> dict[str, float]:
    """How far the maps are from what must be true of them, by the name of each claim."""
    trace = hub_run(wanted, asked, _image).trace
    decoder = [call for call in trace if (call.stack, call.kind) == ("decoder", "self")]
    return {
        "rows": row_sum_error(trace, CLAIMED_ROWS),
        "future": max((future_weight(call, CLAIMED_ROWS) for call in decoder), default=0.0),
    }
