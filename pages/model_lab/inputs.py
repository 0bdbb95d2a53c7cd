"""Asking for a model and for what it shall read."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TypeVar

import streamlit as st

from asking.hub import LabInput, Wanted
from asking.request import Picture
from hosting.settings import Settings, settings
from pages.model_lab.models import CURATED, hub_card, hub_run, models_here
from pages.model_lab.patience import Arrived, patiently
from ui.chapter import Chapter
from ui.compute import unless_busy
from ui.controls import escape
from ui.upload import picture_file
from viz_core.hub import HubCard, HubError, HubRun, Sampling, check_name, check_revision
from viz_core.images.opening import PictureError, open_picture

Result = TypeVar("Result")
_MOST_NEW = 256


def ask_model(chapter: Chapter, allowed: Settings) -> Wanted | None:
    """Which model; None, after a sentence, where nothing that can be loaded is named yet."""
    controls, words = chapter.controls, chapter.words
    here = unless_busy(lambda: models_here(allowed.model_folders))
    offered = allowed.models or (here if allowed.chosen_only else ())
    if offered:
        name = str(controls.select("model", offered, offered[0]))
        return Wanted(name, here=name in here)
    if not here:
        st.info(words("none-offered" if allowed.chosen_only else "none-here"), icon=":material/inventory_2:")
    if allowed.chosen_only:
        return None
    sources = ("list", "hub", "folder") if allowed.model_folders else ("list", "hub")
    with st.container(horizontal=True, vertical_alignment="bottom", key="which"):
        source = controls.choice("source", sources, "list")
        if source == "list":
            options = (*here, *(name for name in CURATED if name not in here))
            name = str(controls.select("model", options, options[0]))
            if name in here:
                return Wanted(name, here=True)
            return Wanted(name) if _go_ahead(chapter, Wanted(name)) else None
        if source == "folder":
            folder = controls.text("folder", "", placeholder=words("placeholder.folder"))
            wanted = Wanted(folder.strip(), folder=folder.strip())
        else:
            name = controls.text("name", "", placeholder=words("placeholder.name"))
            revision = controls.text("revision", "", placeholder=words("placeholder.revision"))
            wanted = Wanted(name.strip(), revision)
    if not wanted.name:
        st.caption(words("no-name"))
        return None
    if wanted.folder:
        return wanted
    checked = told(chapter, lambda: Wanted(check_name(wanted.name), check_revision(wanted.revision) or ""))
    if checked is None:
        return None
    if checked.name in here and not checked.revision:
        return Wanted(checked.name, here=True)
    return checked if _go_ahead(chapter, checked) else None


def load(chapter: Chapter, wanted: Wanted) -> HubCard | None:
    """The loaded model's card, or None after a sentence that says why there is none."""
    arrived = Arrived()
    label = chapter.words("loading", model=escape(wanted.name))
    return told(chapter, lambda: unless_busy(lambda: patiently(label, lambda: hub_card(wanted, arrived), arrived)))


def ask_input(chapter: Chapter, wanted: Wanted, card: HubCard) -> LabInput | None:
    """What the model shall read, as its kind wants it; None, after a sentence, where there is nothing yet."""
    controls, kind = chapter.controls, card.kind
    if kind == "vision":
        return _picture(chapter, wanted, controls.key("picture"), chapter.words("picture"))
    if kind == "encoder":
        text = controls.area("text", chapter.words("start.encoder"), height=90)
        pair = controls.text("pair", "", placeholder=chapter.words("placeholder.pair"))
        return LabInput(wanted, text, pair=pair)
    if kind == "decoder":
        text = controls.area("start", chapter.words("start.decoder"), height=90)
        target = ""
    else:
        text = controls.area("text", chapter.words("start.encoder"), height=90)
        target = controls.text("target", "", placeholder=chapter.words("placeholder.target"))
    with controls.more():
        lowest, default = (0, 12) if kind == "decoder" else (1, 48)
        new_tokens = int(controls.slider("new", lowest, _MOST_NEW, default))
        temperature = controls.slider("temperature", 0.0, 2.0, 0.0, 0.05)
        top_k = int(controls.slider("topk", 0, 200, 0))
        top_p = controls.slider("topp", 0.05, 1.0, 1.0, 0.05)
        seed = int(controls.number("seed", 0, 9999, 0))
    return LabInput(
        wanted, text, target=target, new_tokens=new_tokens, sampling=Sampling(temperature, top_k, top_p, seed)
    )


def ask_second(chapter: Chapter, first: LabInput) -> LabInput | None:
    """Another input of the same kind to compare with; None where there is none."""
    with st.expander(chapter.words("second"), icon=":material/compare_arrows:"):
        if first.picture is not None:
            key = chapter.controls.key("picture-2")
            return _picture(chapter, first.model, key, chapter.words("picture"), silent=True)
        text = chapter.controls.text("second", "", placeholder=chapter.words("placeholder.second"))
    if not text.strip():
        return None
    return LabInput(first.model, text, new_tokens=first.new_tokens, sampling=first.sampling)


def input_names(chapter: Chapter, first: LabInput, second: LabInput) -> tuple[str, str]:
    """What two inputs are called side by side: their texts, or which picture it is."""
    words = chapter.words
    return first.text or words("first-picture"), second.text or words("second-picture")


def run(chapter: Chapter, asked: LabInput) -> HubRun | None:
    """One recorded run, or None after a sentence. What was typed stays."""
    return told(chapter, lambda: hub_run(asked))


def told(chapter: Chapter, work: Callable[[], Result]) -> Result | None:
    """The result, or None after a sentence about what was wrong."""
    try:
        return work()
    except HubError as error:
        st.warning(escape(str(error)), icon=":material/edit:")
    except ValueError as error:  # an absent device; the message names those there are
        st.error(escape(str(error)), icon=":material/memory:")
    except (MemoryError, RuntimeError) as error:  # torch's own, when memory runs out in the middle
        st.error(chapter.words("failed", reason=escape(str(error).splitlines()[0][:200])), icon=":material/memory:")
    return None


def _go_ahead(chapter: Chapter, wanted: Wanted) -> bool:
    """A download begins with a click, never with a link; whoever clicked once is not asked again."""
    key = f"{chapter.controls.key('loaded')}-{wanted.name}@{wanted.revision}"
    if not st.session_state.get(key):
        button = st.empty()
        if not button.button(chapter.words("download"), icon=":material/download:", type="primary"):
            st.caption(chapter.words("not-here", model=escape(wanted.name)))
            return False
        button.empty()
        st.session_state[key] = True
    return True


def _picture(chapter: Chapter, wanted: Wanted, key: str, label: str, silent: bool = False) -> LabInput | None:
    content = picture_file(label, key)
    if content is None:
        if not silent:
            st.info(chapter.words("no-picture"), icon=":material/image:")
        return None
    try:
        image = open_picture(content, *settings().picture_limits)
    except PictureError as error:
        st.warning(escape(str(error)), icon=":material/image:")
        return None
    return LabInput(wanted, picture=Picture(hashlib.sha256(content).hexdigest(), image))
