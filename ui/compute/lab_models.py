"""The lab's models on the machine that runs models: the lab lists them, and the vision chapter opens one by a link."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from serving.models.model_spec import NoModel
from ui.compute.models import runner

if TYPE_CHECKING:  # it brings the hub's libraries along: only where they are wanted
    from serving.requests.hub import HubVisionSpec


@st.cache_data(max_entries=4, ttl=20, show_spinner=False)
def local_models(folders: tuple[Path, ...]) -> tuple[str, ...]:  # noqa: ARG001  # others hold other models
    """The names of what can be loaded without a network; looked up anew every so many seconds."""
    from serving.requests.lab_models import local_model_names

    return runner().evaluate_model(NoModel(), local_model_names)


def lab_vision_model(name: str) -> HubVisionSpec:
    """A vision model of the lab by its name, for a link.

    Raises:
        HubError: if it is not on the machine, or not offered.
    """
    from serving.requests.lab_models import hub_offer, linked_vision_model

    folders = hub_offer().folders
    if name not in local_models(folders):
        local_models.clear()  # it may have come seconds ago
    return linked_vision_model(name, local_models(folders))
