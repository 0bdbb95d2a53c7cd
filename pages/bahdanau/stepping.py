"""Stepping through the decoder: at each step, the weights over the source, the token chosen, and the states."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from functools import cache

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from pages.bahdanau import figures
from pages.bahdanau.parts import ATTENTION
from serving.requests.shipped import TranslationRequest
from ui.blocks.translation import word_labels
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate, translator
from ui.text.markdown import escape
from viz_core.lessons.bahdanau import DecoderSteps, decoder_steps, step_residuals, wrong_weights
from viz_core.pretrained import Translation

TOP = 6  # next tokens shown
FIRST = 3  # the step that is open: the first one has read nothing yet, and often attends to the full stop
ROUNDING = 1e-5  # what float32 may lose in sums of a few hundred terms

BROKEN = {"undivided": "rows", "no-tanh": "formula"}  # and the claim that fails


def step_control(chapter: Chapter, result: Translation) -> int:
    """Draw the words written and a button for the next one, which choose the step; return it, counted from 0."""
    last = len(result.target_tokens)
    step = first = min(FIRST, last)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        if last > 1:
            with st.container():
                chapter.controls.clamp("step", last)
                labels = word_labels(result.target_tokens)
                step = chapter.controls.choice("step", tuple(labels), first, labels)
            st.button(
                chapter.words("next"),
                key=chapter.controls.key("next"),
                icon=":material/skip_next:",
                on_click=_next,
                args=(chapter.controls.key("step"), first, last),
            )
    return step - 1


def draw_step(
    chapter: Chapter,
    request: TranslationRequest,
    result: Translation,
    step: int,
    badges: DeltaGenerator | None,
    setting: str,
) -> None:
    """Draw one step with this setting, and the claims about it: all of them intact, the one that fails if broken.

    Args:
        badges: where the claims are drawn; None if the same step, broken, is drawn beside it: then each copy shows
            the weights only, with its claims below.
    """
    steps = evaluate(request, decoder_steps)
    if setting:
        weights, error = evaluate(request, wrong_weights, setting)
        _weights(chapter, "weights-broken", replace(steps, weights=weights), step, result)
        with chapter.claim_row("main"):
            chapter.claim(BROKEN[setting], error, ROUNDING)
        return
    residuals = cache(lambda: evaluate(request, step_residuals))
    if badges is None:
        _weights(chapter, "weights", steps, step, result)
    else:
        wide, narrow = st.columns([3, 2])
        with wide:
            _weights(chapter, "weights", steps, step, result)
        with narrow:
            _choice(chapter, steps, step, result)
    with badges or nullcontext(), chapter.claim_row("main"):
        for name in ("rows", "formula", "contexts"):
            chapter.claim(name, lambda name=name: residuals()[name], ROUNDING)


def states(chapter: Chapter, request: TranslationRequest, step: int) -> None:
    """The query and the context of the step chosen above."""
    steps = evaluate(request, decoder_steps)
    chapter.figure(
        "states",
        figures.states_figure(steps, step, chapter.words.group("figure")),
        step=step + 1,
        query=steps.queries.shape[1],
        context=steps.contexts.shape[1],
    )


def _weights(chapter: Chapter, name: str, steps: DecoderSteps, step: int, result: Translation) -> None:
    weights = steps.weights[step]
    most = int(weights.argmax())
    chapter.figure(
        name,
        figures.weights_figure(steps, step, result.source_tokens, chapter.words.group("figure")),
        step=step + 1,
        word=escape(result.source_tokens[most]),
        weight=f"{float(weights[most]):,.2f}",
        total=f"{float(weights.sum()):,.2f}",
    )


def _choice(chapter: Chapter, steps: DecoderSteps, step: int, result: Translation) -> None:
    top = steps.likeliest(step, TOP)
    ids = [token for token, _ in top]
    readable = translator(ATTENTION).readable_tokens(ids)
    written = result.target_ids[step]
    chapter.figure(
        "choice",
        figures.choice_figure(
            list(zip(readable, (p for _, p in top), strict=True)),
            ids.index(written) if written in ids else None,
            chapter.words.group("figure"),
        ),
        written=escape(result.target_tokens[step]),
        summary=[f"{escape(word)} {p:.2f}" for word, (_, p) in zip(readable, top, strict=True)],
    )
    if written != ids[0]:
        chapter.text("less-probable")


def _next(key: str, first: int, last: int) -> None:
    """Go one step on; from the last step back to the first."""
    st.session_state[key] = int(st.session_state.get(key, first)) % last + 1
