"""The lab's vision models in the vision chapter: the way there, and the model when one arrives."""

from __future__ import annotations

import streamlit as st

from asking.hub import Wanted
from hosting.settings import settings
from pages.model_lab.models import models_here
from ui.chapter import Chapter
from ui.contents import page
from viz_core.hub import HubCard, HubError


def link_to_vision(chapter: Chapter, card: HubCard) -> None:
    """A way from the lab to the vision chapter, with this model open there."""
    label, asks = chapter.words("open-vision"), {"vt-lab": card.name}
    st.page_link(page("vision-transformer"), label=label, icon=":material/arrow_forward:", query_params=asks)


def lab_vision(name: str) -> Wanted:
    """A vision model of the lab by its name. A link may open what is on this machine, and never starts a download.

    Raises:
        HubError: if it is not here, or not offered here.
    """
    allowed = settings()
    if allowed.models and name not in allowed.models:
        raise HubError(f"{name[:80]} is not among the models that are offered here.")
    if name not in models_here(allowed.model_folders):
        models_here.clear()  # it may have come seconds ago
    if name not in models_here(allowed.model_folders):
        raise HubError(f"{name[:80]} is not on this machine. Load it in the model lab first.")
    return Wanted(name, here=True)
