"""Stepping through the decoder: at each word, the weights over the source, the choice, and the states behind it."""

from __future__ import annotations

import streamlit as st

from pages.bahdanau import figures
from pages.bahdanau.models import ATTENTION
from ui.blocks.translation import TranslationInputs
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate, sentence_request, translator
from ui.text.markdown import escape
from viz_core.lessons.bahdanau.decoder_steps import DecoderSteps, decoder_steps
from viz_core.pretrained import Translation

LIKELIEST = 6  # next words shown


def step_through(chapter: Chapter, request: TranslationInputs, result: Translation) -> None:
    """One step of the decoder, chosen by a slider or a button; a fragment, so that only this part runs again."""
    chapter.fragment(lambda: _step(chapter, request, result))


def _step(chapter: Chapter, request: TranslationInputs, result: Translation) -> None:
    steps = evaluate(sentence_request(ATTENTION, request.text, request.beam), decoder_steps)
    words, last = result.target_tokens, len(result.target_tokens)
    with chapter.card("step"):
        chapter.heading("step")
        pictures, under = st.container(), st.container(horizontal=True, vertical_alignment="bottom")
        step = 1
        if last > 1:
            with under:
                with st.container():
                    step = int(chapter.controls.slider("step", 1, last, 1))
                st.button(
                    chapter.words("next"),
                    key=chapter.controls.key("next"),
                    icon=":material/skip_next:",
                    on_click=_next,
                    args=(chapter.controls.key("step"), last),
                )
        with pictures:
            st.markdown(_so_far(chapter, words, step - 1))
            _pictures(chapter, steps, step - 1, result)
        chapter.figure(
            "states",
            figures.states_figure(steps, step - 1, chapter.words.group("figure")),
            step=step,
            query=steps.queries.shape[1],
            context=steps.contexts.shape[1],
        )


def _pictures(chapter: Chapter, steps: DecoderSteps, step: int, result: Translation) -> None:
    """Weights over the source, and the word chosen."""
    names, source = chapter.words.group("figure"), result.source_tokens
    likeliest = steps.likeliest(step, LIKELIEST)
    ids = [token for token, _ in likeliest]
    readable = translator(ATTENTION).readable_tokens(ids)
    written = result.target_ids[step]
    weights = steps.weights[step]
    most = int(weights.argmax())
    wide, narrow = st.columns([3, 2])
    with wide:
        chapter.figure(
            "weights",
            figures.weights_figure(steps, step, source, names),
            step=step + 1,
            word=escape(source[most]),
            weight=f"{float(weights[most]):.2f}",
        )
    with narrow:
        chapter.figure(
            "choice",
            figures.choice_figure(
                list(zip(readable, (p for _, p in likeliest), strict=True)),
                ids.index(written) if written in ids else None,
                names,
            ),
            written=escape(result.target_tokens[step]),
            summary=[f"{escape(word)} {p:.2f}" for word, (_, p) in zip(readable, likeliest, strict=True)],
        )


def _so_far(chapter: Chapter, words: tuple[str, ...], step: int) -> str:
    """The translation with this step's word marked and later words pale."""
    before = " ".join(escape(word) for word in words[:step])
    after = " ".join(escape(word) for word in words[step + 1 :])
    return chapter.words(
        "so-far",
        before=before,
        word=escape(words[step]),
        after=f":gray[{after}]" if after else "",
    )


def _next(key: str, last: int) -> None:
    """Go one step on; from the last step back to the first."""
    st.session_state[key] = int(st.session_state.get(key, 1)) % last + 1
