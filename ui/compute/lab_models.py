"""The model lab's models on the machine that runs models; the vision chapter opens one of them by a link."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import streamlit as st

from serving.models.model_spec import NoModel
from ui.compute.models import runner

if TYPE_CHECKING:  # importing it imports transformers, which only the lab needs
    from serving.requests.hub import HubVisionSpec
    from serving.requests.lab_models import HubOffer


@st.cache_data(max_entries=4, ttl=20, show_spinner=False)
def local_models(folders: tuple[Path, ...]) -> tuple[str, ...]:  # noqa: ARG001  # part of the cache key
    """Return the names of models that can be loaded without a network, refreshed every 20 seconds."""
    from serving.requests.lab_models import local_model_names

    return runner().evaluate_model(NoModel(), local_model_names)


@st.cache_data(max_entries=4, show_spinner=False)
def local_model_kinds(names: tuple[str, ...]) -> dict[str, str]:  # noqa: ARG001  # part of the cache key
    """Return the kind of each model that can be loaded without a network, for the names of `local_models`."""
    from serving.requests.lab_models import local_model_kinds as find_kinds

    return runner().evaluate_model(NoModel(), find_kinds)


def typed_sources(offer: HubOffer) -> tuple[str, ...]:
    """Return the sources besides the list: any folder may be opened from this machine only, as others could try paths.

    Args:
        offer: of this server.
    """
    if offer.restricted or offer.names:
        return ()
    is_remote = isinstance(st.context.ip_address, str)  # None on this machine
    return ("hub",) if is_remote and not offer.folders else ("hub", "folder")


def lab_vision_model(name: str) -> HubVisionSpec:
    """Return a vision model of the lab by its name in a link.

    Raises:
        HubError: if the model is not on the machine, or not offered.
    """
    from serving.requests.lab_models import hub_offer, linked_vision_model

    folders = hub_offer().folders
    if name not in local_models(folders):
        local_models.clear()  # it may have been downloaded since
    return linked_vision_model(name, local_models(folders))
