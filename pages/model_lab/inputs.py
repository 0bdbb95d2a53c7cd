"""Controls for a model and for its inputs."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import nullcontext
from dataclasses import replace
from typing import Any, TypeVar

import streamlit as st

from pages.model_lab.background_work import Progress, with_progress
from pages.model_lab.models import CURATED, hub_card, hub_run
from pages.model_lab.sounds import ask_sound
from serving.requests.hub import HubModelSpec, HubRequest
from serving.requests.lab_models import HubOffer
from serving.requests.request import Picture
from ui.chapter.chapter import Chapter
from ui.compute.lab_models import local_models
from ui.compute.pictures import read_picture, sample_picture
from ui.compute.slots import load_or_stop
from ui.text.errors import explain, first_line
from ui.text.markdown import escape
from ui.widgets.shared_sentence import shared_text_input
from ui.widgets.upload import picture_file
from viz_core.hub import HubCard, HubError, HubRun, Sampling, check_name, check_revision
from viz_core.hub.kinds import InputControl
from viz_core.hub.runs.layouts import MARK
from viz_core.images.open_image import PictureError
from viz_core.images.synthetic import GARMENTS, SCENES

Result = TypeVar("Result")
_MOST_NEW = 256
_ANY = "any-language"


def ask_for_model(chapter: Chapter, offer: HubOffer) -> HubModelSpec | None:
    """The chosen model; None, after a message, where none can be loaded yet."""
    controls, words = chapter.controls, chapter.words
    here = load_or_stop(lambda: local_models(offer.folders))
    offered = offer.names or (here if offer.restricted else ())
    if offered:
        name = str(controls.select("model", offered, offered[0]))
        return HubModelSpec(name, offline=name in here)
    if not here:
        st.info(words("none-offered" if offer.restricted else "none-here"), icon=":material/inventory_2:")
    if offer.restricted:
        return None
    sources = ("list", "hub", "folder") if offer.folders else ("list", "hub")
    with st.container(horizontal=True, vertical_alignment="bottom", key="which"):
        source = controls.choice("source", sources, "list")
        if source == "list":
            options = (*here, *(name for name in CURATED if name not in here))
            name = str(controls.select("model", options, options[0]))
            if name in here:
                return HubModelSpec(name, offline=True)
            return HubModelSpec(name) if _go_ahead(chapter, HubModelSpec(name)) else None
        model = _typed_folder(chapter, "folder") if source == "folder" else _typed_name(chapter, "name", "revision")
    return _as_typed(chapter, model, here)


def ask_other_model(chapter: Chapter, offer: HubOffer, first: HubModelSpec) -> HubModelSpec | None:
    """A second model; None if the reader chooses none."""
    controls = chapter.controls
    here = load_or_stop(lambda: local_models(offer.folders))
    offered = offer.names or (here if offer.restricted else ())
    listed = offered or (*here, *(name for name in CURATED if name not in here))
    typed = () if offer.restricted or offered else ("hub", "folder") if offer.folders else ("hub",)
    others = tuple(name for name in listed if name != first.name)
    name = str(controls.select("other", ("no-other", *others, *typed), "no-other"))
    if name == "no-other":
        return None
    if name == "folder":
        return _as_typed(chapter, _typed_folder(chapter, "other-folder"), here)
    if name == "hub":
        return _as_typed(chapter, _typed_name(chapter, "other-name", "other-revision"), here)
    if offered or name in here:
        return HubModelSpec(name, offline=name in here)
    return HubModelSpec(name) if _go_ahead(chapter, HubModelSpec(name)) else None


def _typed_folder(chapter: Chapter, name: str) -> HubModelSpec:
    folder = chapter.controls.text(name, "", placeholder=chapter.words("placeholder.folder"))
    return HubModelSpec(folder.strip(), folder=folder.strip())


def _typed_name(chapter: Chapter, name: str, revision: str) -> HubModelSpec:
    controls, words = chapter.controls, chapter.words
    typed = controls.text(name, "", placeholder=words("placeholder.name"))
    return HubModelSpec(typed.strip(), controls.text(revision, "", placeholder=words("placeholder.revision")))


def _as_typed(chapter: Chapter, model: HubModelSpec, here: Collection[str]) -> HubModelSpec | None:
    """The model whose name was typed; None, after a message, where it cannot be loaded."""
    if not model.name:
        st.caption(chapter.words("no-name"))
        return None
    if model.folder:
        return model
    checked = report_errors(chapter, lambda: HubModelSpec(check_name(model.name), check_revision(model.revision) or ""))
    if checked is None:
        return None
    if checked.name in here and not checked.revision:
        return HubModelSpec(checked.name, offline=True)
    return checked if _go_ahead(chapter, checked) else None


def load(chapter: Chapter, model: HubModelSpec) -> HubCard | None:
    """The loaded model's card; None after an error message."""
    progress = Progress()
    label = chapter.words("loading", model=escape(model.name))
    return report_errors(
        chapter, lambda: load_or_stop(lambda: with_progress(label, lambda: hub_card(model, progress), progress))
    )


def ask_input(chapter: Chapter, model: HubModelSpec, card: HubCard) -> HubRequest | None:
    """The request that the controls of the model's kind describe; None, after a message, while an input is missing."""
    controls = card.kind_class.controls
    writing = [control for control in controls if control.widget == "writing"]
    others = [control for control in controls if control not in writing]
    values: dict[str, Any] = {}
    beside_text = bool(writing) and any(control.widget == "shared-text" for control in others)
    with st.container(horizontal=True, vertical_alignment="bottom") if beside_text else nullcontext():
        with st.container() if beside_text else nullcontext():
            for control in others:
                values |= _WIDGETS[control.widget](chapter, card, control)
        for control in writing:
            values |= _writing(chapter, control)
    if None in (values.get("picture", ""), values.get("sound", "")):
        return None
    if card.prompt and MARK not in values["text"] and values["text"].strip():
        values["text"] = card.prompt.replace("{text}", values["text"])
    return HubRequest(model, **values)


def _initial(chapter: Chapter, control: InputControl) -> str:
    return chapter.words(control.initial) if control.initial else ""


def _shared_text(chapter: Chapter, _card: HubCard, control: InputControl) -> dict[str, Any]:
    text = shared_text_input(chapter.controls, control.name, _initial(chapter, control), height=90)
    return {_FIELDS.get(control.field, control.field): text}


def _line(chapter: Chapter, _card: HubCard, control: InputControl) -> dict[str, Any]:
    placeholder = chapter.words(control.placeholder) if control.placeholder else ""
    text = chapter.controls.text(control.name, _initial(chapter, control), placeholder=placeholder)
    return {_FIELDS.get(control.field, control.field): text}


def _area(chapter: Chapter, _card: HubCard, control: InputControl) -> dict[str, Any]:
    """A text that may say where a picture stands in it."""
    text = chapter.controls.text_area(control.name, _initial(chapter, control), height=70)
    st.caption(chapter.words("own-prompt"))
    return {_FIELDS.get(control.field, control.field): text}


def _picture(chapter: Chapter, card: HubCard, control: InputControl) -> dict[str, Any]:
    return {"picture": _uploaded(chapter, control.name, lambda: _drawn(chapter, card))}


def _sound(chapter: Chapter, _card: HubCard, _control: InputControl) -> dict[str, Any]:
    return {"sound": ask_sound(chapter)}


def _speech_options(chapter: Chapter, card: HubCard, control: InputControl) -> dict[str, Any]:
    """Language and task of a sound, where the model offers a choice; "" for the model's own."""
    language, task = _ANY, ""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if card.languages:
            language = str(chapter.controls.select(control.name, (_ANY, *card.languages), _ANY))
        if len(card.tasks) > 1:
            task = str(chapter.controls.choice("task", card.tasks, card.tasks[0]))
    return {"language": "" if language == _ANY else language, "task": task}


_FIELDS = {"text_pair": "pair"}  # of a request, where they are not those of a run
_WIDGETS: dict[str, Callable[[Chapter, HubCard, InputControl], dict[str, Any]]] = {
    "shared-text": _shared_text,
    "line": _line,
    "area": _area,
    "picture": _picture,
    "sound": _sound,
    "speech-options": _speech_options,
}


def ask_second(
    chapter: Chapter, offer: HubOffer, card: HubCard, first: HubRequest, result: HubRun
) -> HubRequest | None:
    """A second request: another model on the same input, or another input; None for neither."""
    with st.expander(chapter.words("second"), icon=":material/compare_arrows:"):
        other = ask_other_model(chapter, offer, first.model)
        if other is not None:
            return _same_for(chapter, other, card, first, result)
        if first.picture is not None:
            second = _uploaded(chapter, "picture-2", lambda: None)
            return None if second is None else replace(first, picture=second)
        if first.sound is not None:  # one sound at a time
            return None
        text = chapter.controls.text("second", "", placeholder=chapter.words("placeholder.second"))
    if not text.strip():
        return None
    return HubRequest(first.model, text, new_tokens=first.new_tokens, sampling=first.sampling)


def _same_for(
    chapter: Chapter, other: HubModelSpec, card: HubCard, first: HubRequest, result: HubRun
) -> HubRequest | None:
    """The same input for another model; None, after a message, where it is of another kind or cannot be loaded."""
    theirs = load(chapter, other)
    if theirs is not None and theirs.kind != card.kind:
        kinds = {"first": chapter.words(f"kind.{card.kind}"), "second": chapter.words(f"kind.{theirs.kind}")}
        st.caption(chapter.words("two-kinds", **kinds))
        return None
    if theirs is None:
        return None
    language = first.language if first.language in theirs.languages else ""
    task = first.task if first.task in theirs.tasks else ""
    return replace(first, model=other, language=language, task=task, **_as_written(first, result))


def _as_written(first: HubRequest, result: HubRun) -> dict[str, Any]:
    """Options with which another model reads what the first has read and written."""
    if first.picture is not None or first.target:
        return {}
    if result.target_tokens:
        return {"target": result.text}
    written = [token for token in result.tokens[result.num_prompt_tokens :] if not token.special]
    text = "".join(f" {token.text}" if token.starts_word else token.text for token in written)
    return {"target": text, "new_tokens": 0} if text.strip() else {"new_tokens": 0}


def input_names(chapter: Chapter, first: HubRequest, second: HubRequest) -> tuple[str, str]:
    """Names of two inputs side by side: their models, texts, or pictures."""
    words = chapter.words
    if first.model != second.model:
        return first.model.name, second.model.name
    if first.picture is not None:
        return words("first-picture"), words("second-picture")
    return first.text, second.text


def run(chapter: Chapter, request: HubRequest) -> HubRun | None:
    """One recorded run, or None after an error message."""
    return report_errors(chapter, lambda: hub_run(request))


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


def _writing(chapter: Chapter, control: InputControl) -> dict[str, Any]:
    """How much a model writes, and how it chooses its words."""
    controls = chapter.controls
    with controls.more():
        new_tokens = int(controls.slider(control.name, control.least, _MOST_NEW, control.default))
        temperature = controls.slider("temperature", 0.0, 2.0, 0.0, 0.05)
        top_k = int(controls.slider("topk", 0, 200, 0))
        top_p = controls.slider("topp", 0.05, 1.0, 1.0, 0.05)
        seed = int(controls.number("seed", 0, 9999, 0))
    return {"new_tokens": new_tokens, "sampling": Sampling(temperature, top_k, top_p, seed)}


def _drawn(chapter: Chapter, card: HubCard) -> Picture:
    """A drawn picture until the reader uploads one: a garment for models that see grey, a scene for the others."""
    drawn = tuple(GARMENTS if card.picture_channels == 1 else SCENES)
    name = str(chapter.controls.choice("drawn", drawn, drawn[0]))
    st.caption(chapter.words("drawn-licence"))
    return sample_picture(name)


def _uploaded(chapter: Chapter, name: str, otherwise: Callable[[], Picture | None]) -> Picture | None:
    """The reader's picture, or `otherwise` until there is one; None after a sentence why it cannot be read."""
    content = picture_file(chapter.words("picture"), chapter.controls.key(name))
    if content is None:
        return otherwise()
    try:
        return read_picture(content)
    except PictureError as error:
        st.warning(explain(error), icon=":material/image:")
    return None
