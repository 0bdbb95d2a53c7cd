"""Controls for the inputs of a model: texts, pictures, videos and sounds."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import streamlit as st

from pages.model_lab.models import choose_second_model, load, read_one_text_each_way
from serving.requests.hub import HubModelSpec, HubRequest
from serving.requests.lab import HubOffer
from serving.requests.request import Picture, SoundInput, VideoInput
from ui.chapter.chapter import Chapter
from ui.compute import models
from ui.compute.pictures import read_picture, read_sound, read_video, sample_picture, sample_sound, sample_video
from ui.text.model_card import class_label, title_of
from ui.text.translations import explain
from ui.widgets.inputs import picture_file, shared_text_input, sound_file, video_files
from viz_core.hub import HubCard, HubRun, Sampling
from viz_core.hub.kinds import InputControl
from viz_core.hub.runs.layouts import MARK
from viz_core.hub.runs.run import RunInputs
from viz_core.images.open_image import PictureError
from viz_core.pretrained.samples import GARMENTS, SCENES
from viz_core.sounds.open_sound import SoundError


def choose_sound(chapter: Chapter) -> SoundInput | None:
    """The chosen sound, with a player; None, after a message, where there is none yet."""
    words = chapter.words
    source = chapter.controls.choice("sound", ("tones", "sound-file", "microphone"), "tones")
    if source == "tones":
        given = sample_sound()
        st.caption(words("drawn-tones"))
    else:
        content = _brought(chapter, str(source))
        if content is None:
            st.caption(words("no-sound"))
            return None
        try:
            given = read_sound(content)
        except SoundError as error:
            st.warning(explain(error), icon=":material/graphic_eq:")
            return None
    st.audio(given.open().wav(), alt=words("whole-sound"))
    return given


def _brought(chapter: Chapter, source: str) -> bytes | None:
    """What the reader uploads or records."""
    words, key = chapter.words, chapter.controls.key(source)
    if source == "sound-file":
        return sound_file(words("sound-file"), key)
    recorded = st.audio_input(words("microphone"), key=key)
    return None if recorded is None else recorded.getvalue()


_MAX_NEW = 256
_ANY = "any-language"


def read_inputs(chapter: Chapter, model: HubModelSpec, card: HubCard) -> HubRequest | None:
    """The request that the controls of the model's kind describe; None, after a message, while an input is missing."""
    controls = card.kind_class.controls
    writing = [control for control in controls if control.widget == "writing"]
    others = [control for control in controls if control not in writing]
    values: dict[str, Any] = {}
    with st.container(gap="xsmall"):
        for control in others:
            values |= _WIDGETS[control.widget](chapter, card, control)
    for control in writing:
        values |= _writing(chapter, control)
    if any(values.get(name, "") is None for name in ("image", "video", "sound")):
        return None
    text = values.get("text") or ""
    if card.prompt and MARK not in text and text.strip():
        values["text"] = card.prompt.replace("{text}", text)
    return HubRequest(model, RunInputs(**values))


def _initial(chapter: Chapter, control: InputControl) -> str:
    return chapter.words(control.initial) if control.initial else ""


def _shared_text(chapter: Chapter, _card: HubCard, control: InputControl) -> dict[str, Any]:
    text = shared_text_input(chapter.controls, control.name, _initial(chapter, control), height=68)
    return {control.field: text or None}


def _line(chapter: Chapter, _card: HubCard, control: InputControl) -> dict[str, Any]:
    placeholder = chapter.words(control.placeholder) if control.placeholder else ""
    text = chapter.controls.text(control.name, _initial(chapter, control), placeholder=placeholder)
    return {control.field: text or None}


def _area(chapter: Chapter, _card: HubCard, control: InputControl) -> dict[str, Any]:
    """A text that may say where a picture stands in it."""
    text = chapter.controls.text(control.name, _initial(chapter, control), height=70)
    st.caption(chapter.words("own-prompt"))
    return {control.field: text or None}


def _picture(chapter: Chapter, card: HubCard, control: InputControl) -> dict[str, Any]:
    if card.takes_video and chapter.controls.choice("medium", ("still", "frames"), "still") == "frames":
        return {"video": _video(chapter)}
    return {"image": _uploaded(chapter, control.name, lambda: _drawn(chapter, card))}


def _video(chapter: Chapter) -> VideoInput | None:
    """The reader's video, or a drawn one until there is one; None after a sentence why it cannot be read."""
    files = video_files(chapter.words("video"), chapter.controls.key("video"))
    if not files:
        return sample_video(_drawn_name(chapter, SCENES))
    try:
        return read_video(files)
    except PictureError as error:
        st.warning(explain(error), icon=":material/movie:")
    return None


def _sound(chapter: Chapter, _card: HubCard, _control: InputControl) -> dict[str, Any]:
    return {"sound": choose_sound(chapter)}


def _speech_options(chapter: Chapter, card: HubCard, control: InputControl) -> dict[str, Any]:
    """Language and task of a sound, where the model offers a choice; None for the model's own."""
    language, task = _ANY, None
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if card.languages:
            language = str(chapter.controls.select(control.name, (_ANY, *card.languages), _ANY))
        if len(card.tasks) > 1:
            task = str(chapter.controls.choice("task", card.tasks, card.tasks[0]))
    return {"language": None if language == _ANY else language, "task": task}


_WIDGETS: dict[str, Callable[[Chapter, HubCard, InputControl], dict[str, Any]]] = {
    "shared-text": _shared_text,
    "line": _line,
    "area": _area,
    "picture": _picture,
    "sound": _sound,
    "speech-options": _speech_options,
}


def read_second_inputs(
    chapter: Chapter, offer: HubOffer, card: HubCard, first: HubRequest, result: HubRun
) -> HubRequest | None:
    """A second request: another model on the same input, or another input; None for neither."""
    st.markdown(f"**{chapter.words('second')}**")
    other = choose_second_model(chapter, offer, first.model, card.kind_class)
    if other is not None:
        return _same_for(chapter, other, card, first, result)
    if first.inputs.image is not None:
        second = _uploaded(chapter, "picture-2", lambda: None)
        return None if second is None else replace(first, inputs=replace(first.inputs, image=second))
    if first.inputs.sound is not None or first.inputs.video is not None:  # one at a time
        return None
    text = chapter.controls.text("second", "", placeholder=chapter.words("placeholder.second"))
    if not text.strip():
        return None
    given = first.inputs
    return HubRequest(first.model, RunInputs(text, max_new_tokens=given.max_new_tokens, sampling=given.sampling))


def _same_for(
    chapter: Chapter, other: HubModelSpec, card: HubCard, first: HubRequest, result: HubRun
) -> HubRequest | None:
    """The same input for another model; None, after a message, where it is of another kind or cannot be loaded."""
    theirs = load(chapter, other)
    if theirs is not None and read_one_text_each_way(theirs.kind_class, card.kind_class):
        read_or_written = f"{first.inputs.text or ''} {result.text.strip()}".strip()  # by the first
        return HubRequest(other, RunInputs(read_or_written, max_new_tokens=0))
    if theirs is not None and theirs.kind != card.kind:
        kinds = {"first": chapter.words(f"kind.{card.kind}"), "second": chapter.words(f"kind.{theirs.kind}")}
        st.caption(chapter.words("two-kinds", **kinds))
        return None
    if theirs is None:
        return None
    inputs = replace(first.inputs, **_as_written(first.inputs, result))
    language = inputs.language if inputs.language in theirs.languages else None
    task = inputs.task if inputs.task in theirs.tasks else None
    return replace(first, model=other, inputs=replace(inputs, language=language, task=task))


def _as_written(first: RunInputs, result: HubRun) -> dict[str, Any]:
    """Options with which another model reads what the first has read and written."""
    if first.image is not None or first.video is not None or first.target:
        return {}
    if result.target_tokens:
        return {"target": result.text or None}
    written = [token for token in result.tokens[result.num_prompt_tokens :] if not token.special]
    text = "".join(f" {token.text}" if token.starts_word else token.text for token in written)
    return {"target": text if text.strip() else None, "max_new_tokens": 0}


def input_names(chapter: Chapter, first: HubRequest, second: HubRequest) -> tuple[str, str]:
    """Names of two inputs side by side: their models, texts, or pictures."""
    words = chapter.words
    if first.model != second.model:
        return title_of(first.model.name), title_of(second.model.name)
    if first.inputs.image is not None:
        return words("first-picture"), words("second-picture")
    return first.inputs.text or "", second.inputs.text or ""


def run(request: HubRequest) -> HubRun | None:
    """One recorded run, or None after an error message."""
    return models.attempted(lambda: models.run(request, "hub_run"))


def _writing(chapter: Chapter, control: InputControl) -> dict[str, Any]:
    """How much a model writes, and how it chooses its words."""
    controls = chapter.controls
    with controls.more():
        new_tokens = int(controls.slider(control.name, control.least, _MAX_NEW, control.default))
        temperature = controls.slider("temperature", 0.0, 2.0, 0.0, 0.05)
        top_k = int(controls.slider("topk", 0, 200, 0))
        top_p = controls.slider("topp", 0.05, 1.0, 1.0, 0.05)
        seed = int(controls.number("seed", 0, 9999, 0))
    return {"max_new_tokens": new_tokens, "sampling": Sampling(temperature, top_k, top_p, seed)}


def _drawn(chapter: Chapter, card: HubCard) -> Picture:
    """A drawn picture until the reader uploads one: a garment for models that see grey, a scene for the others."""
    return sample_picture(_drawn_name(chapter, GARMENTS if card.picture_channels == 1 else SCENES))


def _drawn_name(chapter: Chapter, drawn: Sequence[str]) -> str:
    name = str(chapter.controls.choice("drawn", drawn, drawn[0], {name: class_label(name) for name in drawn}))
    st.caption(chapter.words("drawn-licence"))
    return name


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
