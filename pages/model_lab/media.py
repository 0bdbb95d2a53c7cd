"""Attention to pictures, videos and sounds: over patches, by cosine similarity, and over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import plotly.graph_objects as go
import streamlit as st
from jaxtyping import Float

from pages.model_lab.figures import fingerprint_figure, frames_figure, mark_sinks
from serving.requests.hub import HubRequest
from ui.blocks.over_picture import over_picture_figure
from ui.blocks.translation import choose_token
from ui.chapter.chapter import Chapter
from ui.chapter.downloads import listing
from ui.compute.models import evaluate
from ui.text.head_names import head_link, head_place
from ui.text.markdown import escape, join_sentences
from ui.text.numbers import localised
from ui.widgets.figure_style import Labels
from ui.widgets.places import draw_places
from viz_core.hub import Frame, HubRun, PatchGrid
from viz_core.hub.runs.sound_input import SoundFeatures
from viz_core.hub.word_timestamps import TimedWord, word_times
from viz_core.lab.fields.pictures import draw_picture
from viz_core.lab.fields.sounds import draw_sound, sum_moments
from viz_core.lab.runs import (
    likeness,
    out_of_order,
    over_time,
    picture_shares,
    pooling,
    row_of_heads,
    shows_contributions,
)
from viz_core.lab.sinks import SINK_LENGTH, SINK_WEIGHT, PictureRows, picture_rows
from viz_core.view.state import ViewState

_GROUP = "decoder-self"
_MAX_NAMED = 4


def in_picture(chapter: Chapter, request: HubRequest, run: HubRun, view: ViewState) -> None:
    """The open head's row of one word, over the picture or frames; and how much each head gives to them."""
    count = len(run.tokens)
    first = max(int(grid.places.max()) for grid in run.patches) + 1  # words after the picture: the others hardly see it
    pinned = [pin.index for pin in view.pins if pin.axis == "query" and pin.index >= first]
    with chapter.card("in-picture"):
        token = pinned[0] if pinned else min(max(first, run.num_prompt_tokens - 1), count - 1)
        if not pinned and count - first > 1:
            token = choose_token(chapter, "looking", [each.label for each in run.tokens], first, token)
        layers = sum(call.stack == "decoder" for call in run.trace)
        here = view.group == _GROUP
        layer, head = (view.layer, view.head) if here else (layers // 2, 0)
        _over(chapter, request, run, token, layer, head)
        _shares(chapter, request, run, token)


def _over(chapter: Chapter, request: HubRequest, run: HubRun, token: int, layer: int, head: int) -> None:
    site = f"decoder.{layer}.self"
    found = evaluate(request, picture_rows, site, token) if evaluate(request, shows_contributions) else None
    rows = evaluate(request, row_of_heads, site, token) if found is None else found.weights
    own = rows[head]
    best = max(run.patches, key=lambda grid: float(own[grid.places].max()))
    row, column = np.unravel_index(int(own[best.places].argmax()), best.shape)
    left, top, right, bottom = (f"{edge:.0f}" for edge in best.box_of(int(row), int(column)))
    values: dict[str, Any] = {"token": escape(run.tokens[token].label), "linked": head_link(_GROUP, layer, head)}
    text_name = "in-picture" if run.video is None else "in-video"
    chapter.text(text_name, **values)
    if any(len(grid.frames) > 1 for grid in run.patches):
        chapter.text("merged-frames", count=max(len(grid.frames) for grid in run.patches))
    words, sinks = chapter.words, () if found is None else found.sinks
    figure = _picture_figure if run.video is None else _frames_figure
    shares = [float(own[grid.places].sum()) for grid in run.patches]
    chapter.figure(
        text_name,
        partial(figure, chapter, run, own, rows.mean(axis=0) if found is None else found.added[head], sinks, found),
        share=f"{sum(shares):.1%}",
        patch=run.tokens[int(best.places[row, column])].label,
        most=f"{float(own[best.places].max()):.3f}",
        next=escape(run.tokens[token + 1].label) if token + 1 < len(run.tokens) else words("not-yet"),
        left=left,
        top=top,
        right=right,
        bottom=bottom,
        frame=frame_name(chapter, run.patches[int(np.argmax(shares))]),
        frame_share=f"{max(shares):.1%}",
        **values,
    )
    if found is None:
        chapter.text("sinks-unknown")
    else:
        _name_sinks(chapter, run, found)


def _name_sinks(chapter: Chapter, run: HubRun, found: PictureRows) -> None:
    """Say which patches are sinks, and by what."""
    convention = {"weight": f"{SINK_WEIGHT:g}", "length": f"{SINK_LENGTH:g}"}
    if not found.sinks:
        chapter.text("no-picture-sinks", **convention)
        return
    first = max(found.sinks, key=lambda place: float(found.attention[place]))
    named = sorted(found.sinks, key=lambda place: -float(found.attention[place]))[:_MAX_NAMED]
    chapter.text(
        "picture-sinks",
        names=", ".join(f"`{run.tokens[place].label}`" for place in named),
        count=len(found.sinks),
        largest=f"`{run.tokens[first].label}`",
        attention=f"{found.attention[first]:.1f}",
        size=f"{found.lengths[first]:.2f}",
        **convention,
    )


def frame_name(chapter: Chapter, grid: PatchGrid) -> str:
    """The frame or the merged frames of a grid, numbered from 1; "" of a picture."""
    if not grid.frames:
        return ""
    first, last = grid.frames[0] + 1, grid.frames[-1] + 1
    return chapter.words("frame" if first == last else "frames", first=first, last=last)


def _picture_figure(
    chapter: Chapter,
    run: HubRun,
    own: Float[np.ndarray, " tokens"],
    other: Float[np.ndarray, " tokens"],
    sinks: tuple[int, ...],
    found: PictureRows | None,
) -> go.Figure:
    """The head's weights over each grid, and beside them what each patch adds, or the mean of the layer."""
    words = chapter.words
    maps = {words("title.head" if i == 0 else "title.whole"): grid.over(own) for i, grid in enumerate(run.patches)}
    maps[words("title.mean" if found is None else "title.added")] = run.patches[0].over(other)
    figure = over_patches_figure(run, maps, words.group("figure"))
    for column, grid in enumerate((*run.patches, run.patches[0]), start=1):
        mark_sinks(figure, grid, sinks, column, 1)
    return figure


def _frames_figure(
    chapter: Chapter,
    run: HubRun,
    own: Float[np.ndarray, " tokens"],
    other: Float[np.ndarray, " tokens"],
    sinks: tuple[int, ...],
    found: PictureRows | None,
) -> go.Figure:
    """The head's weights frame by frame, and under them what each patch adds, or the mean of the layer."""
    names = [frame_name(chapter, grid) for grid in run.patches]
    words, unit = chapter.words, "weight" if found is None else "added-length"
    below = words("title.mean") if found is None else words("title.added")
    maps = {words("title.head"): (own, "weight"), below: (other, unit)}
    return frames_figure(run, names, maps, sinks, chapter.words.group("figure"))


def over_patches_figure(run: HubRun, maps: Mapping[str, Float[np.ndarray, "_ _"]], labels: Labels) -> go.Figure:
    """Rows of a map over the part of the picture that the model was shown, side by side.

    Args:
        maps: by their titles, each as its grid of patches has it.
    """
    if run.image is None:
        raise ValueError("run: expected one with a picture")
    grid = run.patches[0]
    left, top, right, bottom = grid.box
    rows, columns = grid.shape
    part = run.image.crop((round(left), round(top), max(round(right), 1), max(round(bottom), 1)))
    aspect = (bottom - top) / rows / ((right - left) / columns)
    return over_picture_figure(part, maps, None, labels, aspect=aspect)


def _shares(chapter: Chapter, request: HubRequest, run: HubRun, token: int) -> None:
    """Share of attention that each head gives to the picture or video."""
    shares = evaluate(request, picture_shares, token)
    layer, head = (int(i) for i in np.unravel_index(int(shares.argmax()), shares.shape))
    chapter.figure(
        "picture-share",
        partial(fingerprint_figure, shares, "share", chapter.words.group("figure")),
        token=escape(run.tokens[token].label),
        layers=shares.shape[0],
        heads=shares.shape[1],
        layer=layer + 1,
        head=head + 1,
        linked=head_link(_GROUP, layer, head),
        most=f"{shares.max():.2f}",
        least=f"{shares.min():.2f}",
    )


_ROUNDING = 1e-5


def show_similarity(chapter: Chapter, request: HubRequest, run: HubRun) -> None:
    """Cosines of the text with the picture and with each of its patches."""
    cosines, residual = evaluate(request, likeness)
    frame = run.frame
    if frame is None:
        return
    pooled = evaluate(request, pooling)
    rows, columns = frame.grid
    patches = cosines[len(cosines) - rows * columns :].reshape(rows, columns)
    most, least = (np.unravel_index(int(i), patches.shape) for i in (patches.argmax(), patches.argmin()))
    with chapter.card("likeness"):
        text_name = "likeness" if pooled is None else "likeness-pooled"
        chapter.text(text_name, text=escape(request.inputs.text or ""), cosine=f"{cosines[0]:.3f}")
        names = chapter.words.group("figure")
        maps = {chapter.words("title.likeness"): patches}
        chapter.figure(
            "likeness",
            partial(over_picture_figure, frame.image, maps, None, names, "cosine", lowest=float(patches.min())),
            text=escape(request.inputs.text or ""),
            most=f"{patches[most]:.3f}",
            row=most[0] + 1,
            column=most[1] + 1,
            least=f"{patches[least]:.3f}",
            least_row=least[0] + 1,
            least_column=least[1] + 1,
        )
        with chapter.claim_row("claims-likeness"):
            chapter.claim("likeness", residual, _ROUNDING)
        if pooled is not None:
            _show_pooling(chapter, frame, pooled)


def _show_pooling(chapter: Chapter, frame: Frame, weights: Float[np.ndarray, "heads patches"]) -> None:
    """Each head of the pooling over the picture, and the mean of all."""
    heads, count = weights.shape
    names = [chapter.words("pooling-head", head=head + 1) for head in range(heads)]
    rows = weights if heads == 1 else np.concatenate([weights, weights.mean(axis=0, keepdims=True)])
    if heads > 1:
        names.append(chapter.words("title.pooled-mean"))
    drawing = draw_picture(frame.image, frame.grid, names, chapter.words("patch-place"))
    draw_places("pooled", drawing, rows, chapter.words)
    chapter.guidance("pooled", even=f"{1 / count:.3f}")


CROSS = "decoder-cross"
_SPEECH_MAX_NAMED = 12


def speech(chapter: Chapter, request: HubRequest, run: HubRun, sound: SoundFeatures, view: ViewState) -> None:
    """The sheet with the time line; words to click; the opened head, or the mean of those that align, over time."""
    words = evaluate(request, word_times)
    with chapter.card("sound"):
        _about(chapter, run, sound)
        if not words:
            st.info(chapter.words("no-words-heard"), icon=":material/hearing_disabled:")
            _time_line(chapter, sound, (), np.zeros((0, sound.num_keys), dtype=np.float32))
            return
        number = _choose(chapter, request, words)
        word = words[number]
        heads, name = _shown_heads(chapter, sound, view)
        weights, rest = evaluate(request, over_time, heads, tuple(each.steps for each in words))
        _time_line(chapter, sound, words, weights.numpy(), number)
        chapter.guidance(
            "sound",
            head=name,
            word=escape(word.text),
            start=f"{word.start:.2f}",
            end=f"{word.end:.2f}",
            rest=f"{rest[number]:.0%}",
            most=f"{(int(weights[number].argmax()) + 0.5) * sound.key_seconds:.2f}",
        )
        st.audio(sound.waveform.part(word.start, word.end).wav(), alt=chapter.words("part-of-sound"))
        with chapter.claim_row("claims-sound"):
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
    links = [head_link(CROSS, layer, head) for layer, head in sound.aligning[:_SPEECH_MAX_NAMED]]
    if len(sound.aligning) > _SPEECH_MAX_NAMED:
        links[-1] += " …"
    heads = chapter.words("aligning" if sound.aligning_named else "aligning-unnamed", heads=links)
    st.markdown(join_sentences([heads, chapter.words("aligning-times")]))


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


def _shown_heads(chapter: Chapter, sound: SoundFeatures, view: ViewState) -> tuple[tuple[tuple[int, int], ...], str]:
    """Layer and head of the opened head, or of those that align, by choice; and what they are called."""
    aligning = chapter.words("figure.aligning")
    if view.group != CROSS or chapter.controls.choice("times", ("opened", "aligning"), "opened") == "aligning":
        return sound.aligning, aligning
    return ((view.layer, view.head),), head_place(view.layer + 1, view.head + 1)


def _time_line(
    chapter: Chapter,
    sound: SoundFeatures,
    words: Sequence[TimedWord],
    weights: Float[np.ndarray, "words keys"],
    start: int = 0,
) -> None:
    """Spectrogram and wave over seconds, with the words below and the moments that each attends to."""
    moments = sum_moments(weights, sound.num_keys * sound.key_seconds)
    number = partial(localised, language=chapter.words.language)
    draw_places("sound", draw_sound(sound, words, number), moments, chapter.words, start=start)


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
