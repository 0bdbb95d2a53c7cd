"""Speech: the spectrogram, words with their times, and the attention of each."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st
from torch import Tensor

from pages.model_lab.speech_figures import sound_figure
from serving.requests.hub import HubRequest
from serving.requests.speech import out_of_order, over_time
from ui.chapter.chapter import Chapter
from ui.chapter.downloads import listing
from ui.compute.models import evaluate
from ui.text.head_names import head_link
from ui.text.markdown import escape
from viz_core.hub import HubRun
from viz_core.hub.runs.sound_input import SoundFeatures
from viz_core.hub.word_timestamps import TimedWord, word_times
from viz_core.view.state import ViewState

CROSS = "decoder-cross"
_MOST_NAMED = 12


def speech(chapter: Chapter, request: HubRequest, run: HubRun, sound: SoundFeatures, view: ViewState) -> None:
    """The sheet with the spectrogram; words to click; the opened head, and the mean of those that align, over time."""
    words = evaluate(request, word_times)
    with chapter.card("heard"):
        _about(chapter, run, sound)
        if not words:
            st.info(chapter.words("no-words-heard"), icon=":material/hearing_disabled:")
            chapter.figure("heard-alone", partial(sound_figure, sound, {}, (), 0, chapter.words.group("figure")))
            return
        number = _choose(chapter, request, words)
        word = words[number]
        curves, rest = _curves(chapter, request, sound, view, word.steps)
        chapter.figure(
            "heard",
            partial(sound_figure, sound, curves, words, number, chapter.words.group("figure")),
            height=430,
            word=escape(word.text),
            start=f"{word.start:.2f}",
            end=f"{word.end:.2f}",
            rest=f"{100 * rest:.0f} %",
            most=f"{(int(next(iter(curves.values())).argmax()) + 0.5) * sound.key_seconds:.2f}",
        )
        st.audio(sound.waveform.part(word.start, word.end).wav(), alt=chapter.words("part-of-sound"))
        with chapter.claim_row("claims-heard"):
            chapter.claim("order", out_of_order(words), 0.0, count=len(words))
        st.download_button(
            chapter.words("words-csv"),
            partial(_table, chapter, words),
            file_name=f"{chapter.words.stem_of_part('words-csv', 'words')}.csv",
            mime="text/csv",
            key="download-words",
            icon=":material/download:",
            type="tertiary",
            on_click="ignore",
        )


def _about(chapter: Chapter, run: HubRun, sound: SoundFeatures) -> None:
    """How the sound came to the model, and the heads that follow it."""
    all_seconds = len(run.tokens) * sound.key_seconds
    chapter.text(
        "heard", seconds=f"{sound.waveform.seconds:.2f}", all=f"{all_seconds:g}", bands=sound.spectrogram.shape[0]
    )
    links = [head_link(CROSS, layer, head) for layer, head in sound.aligning[:_MOST_NAMED]]
    if len(sound.aligning) > _MOST_NAMED:
        links[-1] += " …"
    chapter.text("aligning" if sound.aligning_named else "aligning-unnamed", heads=links)


def _choose(chapter: Chapter, request: HubRequest, words: Sequence[TimedWord]) -> int:
    """The number of the word that is chosen, by a click on it."""
    key = chapter.controls.key("word")
    of = f"{key}-of"
    if st.session_state.setdefault(of, request.without_payload) != request.without_payload:  # another sound's word
        st.session_state[of] = request.without_payload
        st.session_state.pop(key, None)
        st.query_params.pop(key, None)
    labels = [f"{escape(word.text)} {word.start:.2f}–{word.end:.2f}" for word in words]
    unique = [
        f"{label} ({labels[:i].count(label) + 1})" if label in labels[:i] else label for i, label in enumerate(labels)
    ]
    return unique.index(str(chapter.controls.choice("word", unique, unique[0])))


def _curves(
    chapter: Chapter, request: HubRequest, sound: SoundFeatures, view: ViewState, steps: tuple[int, int]
) -> tuple[dict[str, Tensor], float]:
    """Weights over time by name, the opened head's first; and what the first gives to the silence after the sound."""
    mean, rest = evaluate(request, over_time, sound.aligning, steps)
    curves = {chapter.words("figure.aligning"): mean}
    if view.group != CROSS:
        return curves, rest
    weights, rest = evaluate(request, over_time, ((view.layer, view.head),), steps)
    opened = chapter.common("head-named", layer=view.layer + 1, head=view.head + 1)
    return {opened: weights, **curves}, rest


def _table(chapter: Chapter, words: Sequence[TimedWord]) -> bytes:
    names = chapter.words.group("figure")
    return listing(
        {
            names["word"]: [word.text for word in words],
            names["start"]: [round(word.start, 3) for word in words],
            names["end"]: [round(word.end, 3) for word in words],
        },
        chapter.words.language,
    )
