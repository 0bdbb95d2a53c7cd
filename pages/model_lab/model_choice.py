"""Controls that choose a model, and load it."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TypeVar

import streamlit as st

from pages.model_lab.background_work import Progress, with_progress
from pages.model_lab.models import CURATED, hub_card
from serving.requests.hub import HubModelSpec
from serving.requests.lab_models import HubOffer
from ui.chapter.chapter import Chapter
from ui.compute.models import local_model_kinds, local_models, typed_sources
from ui.compute.slots import load_or_stop
from ui.text.errors import explain, first_line
from ui.text.markdown import escape
from ui.text.model_card import named_model, title_of
from ui.text.numbers import half_width
from viz_core.hub import HubCard, HubError, check_name, check_revision
from viz_core.hub.kinds import ModelKind, kind_named

Result = TypeVar("Result")


def choose_model(chapter: Chapter, offer: HubOffer) -> HubModelSpec | None:
    """The chosen model; None, after a message, where none can be loaded yet."""
    controls, words = chapter.controls, chapter.words
    here = load_or_stop(lambda: local_models(offer.folders))
    offered = offer.names or (here if offer.restricted else ())
    if offered:
        name = str(controls.select("model", offered, offered[0], named_model))
        if offer.restricted:
            st.caption(words("folders-of-owner"))
        return HubModelSpec(name, offline=name in here)
    if not here:
        st.info(words("none-offered" if offer.restricted else "none-here"), icon=":material/inventory_2:")
    if offer.restricted:
        return None
    with st.container(horizontal=True, vertical_alignment="bottom", key="which"):
        source = controls.choice("source", ("list", *typed_sources(offer)), "list")
        if source == "list":
            options = (*here, *(name for name in CURATED if name not in here))
            name = str(controls.select("model", options, options[0], named_model))
            if name in here:
                return HubModelSpec(name, offline=True)
            return HubModelSpec(name) if _go_ahead(chapter, HubModelSpec(name)) else None
        model = _typed_folder(chapter, "folder") if source == "folder" else _typed_name(chapter, "name", "revision")
    if source == "folder" and not model.folder:
        st.caption(words("no-folder"))
        return None
    return _as_typed(chapter, model, here)


def choose_second_model(
    chapter: Chapter, offer: HubOffer, first: HubModelSpec, kind: type[ModelKind]
) -> HubModelSpec | None:
    """A second model; None if the reader chooses none. The list has those that can be compared with the first.

    Args:
        kind: of the first.
    """
    controls = chapter.controls
    here = load_or_stop(lambda: local_models(offer.folders))
    offered = offer.names or (here if offer.restricted else ())
    listed = offered or (*here, *(name for name in CURATED if name not in here))
    typed = typed_sources(offer)
    kinds = CURATED | load_or_stop(lambda: local_model_kinds(here))
    fitting = (name for name in listed if name not in kinds or are_comparable(kind, kind_named(kinds[name])))
    others = tuple(name for name in fitting if name != first.name)
    options, named = ("no-other", *others, *typed), {other: named_model(other) for other in others}
    name = str(
        controls.select("other", options, "no-other", lambda option: named.get(option) or controls.option(option))
    )
    if name == "no-other":
        return None
    if name == "folder":
        return _as_typed(chapter, _typed_folder(chapter, "other-folder"), here)
    if name == "hub":
        return _as_typed(chapter, _typed_name(chapter, "other-name", "other-revision"), here)
    if offered or name in here:
        return HubModelSpec(name, offline=name in here)
    return HubModelSpec(name) if _go_ahead(chapter, HubModelSpec(name)) else None


def are_comparable(first: type[ModelKind], second: type[ModelKind]) -> bool:
    """Whether maps of both can be shown side by side: of one kind, or a text read causally and in both directions."""
    return first.name == second.name or read_one_text_each_way(first, second)


def read_one_text_each_way(*kinds: type[ModelKind]) -> bool:
    """Whether both read texts alone, one of them causally and the other in both directions."""
    only_texts = all("text" in kind.takes and "image" not in kind.takes for kind in kinds)
    return only_texts and {kind.stack for kind in kinds} == {"encoder", "decoder"}


def _typed_folder(chapter: Chapter, name: str) -> HubModelSpec:
    folder = chapter.controls.text(name, "", placeholder=chapter.words("placeholder.folder"))
    return HubModelSpec(folder.strip(), folder=folder.strip())


def _typed_name(chapter: Chapter, name: str, revision: str) -> HubModelSpec:
    controls, words = chapter.controls, chapter.words
    typed = half_width(controls.text(name, "", placeholder=words("placeholder.name")))
    return HubModelSpec(typed.strip(), controls.text(revision, "", placeholder=words("placeholder.revision")))


def _as_typed(chapter: Chapter, model: HubModelSpec, here: Collection[str]) -> HubModelSpec | None:
    """The model whose name was typed; None, after a message, where it cannot be loaded."""
    if model.folder:
        return model
    if not model.name:
        st.caption(chapter.words("no-name"))
        return None
    checked = report_errors(chapter, lambda: HubModelSpec(check_name(model.name), check_revision(model.revision) or ""))
    if checked is None:
        return None
    if checked.name in here and not checked.revision:
        return HubModelSpec(checked.name, offline=True)
    return checked if _go_ahead(chapter, checked) else None


def load(chapter: Chapter, model: HubModelSpec) -> HubCard | None:
    """The loaded model's card; None after an error message."""
    progress = Progress()
    label = chapter.words("loading", model=escape(title_of(model.name)))
    return report_errors(
        chapter, lambda: load_or_stop(lambda: with_progress(label, lambda: hub_card(model, progress), progress))
    )


def _go_ahead(chapter: Chapter, model: HubModelSpec) -> bool:
    """Whether to download: after a click, never by a link alone; one click is enough for a session."""
    key = f"{chapter.controls.key('loaded')}-{model.name}@{model.revision}"
    if not st.session_state.get(key):
        button = st.empty()
        if not button.button(chapter.words("download"), icon=":material/download:", type="primary"):
            st.caption(chapter.words("not-here", model=escape(model.name)))
            return False
        button.empty()
        st.session_state[key] = True
    return True


def report_errors(chapter: Chapter, work: Callable[[], Result]) -> Result | None:
    """The result of `work`, or None after an error message."""
    try:
        return work()
    except HubError as error:
        st.warning(explain(error), icon=":material/edit:")
    except ValueError as error:  # an absent device; the message names those there are
        st.error(explain(error), icon=":material/memory:")
    except (MemoryError, RuntimeError) as error:  # torch's own, when memory runs out in the middle
        st.error(chapter.words("failed", reason=first_line(error)), icon=":material/memory:")
    return None
