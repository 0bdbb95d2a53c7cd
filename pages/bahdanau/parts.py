"""The Bahdanau chapter's parts: stepping through the decoder, and three models side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from pages.bahdanau import figures
from ui.chapter import Chapter
from ui.controls import escape
from ui.models import translation, translation_look, translator
from ui.translation import Request
from viz_core.lessons.bahdanau.decoder_steps import DecoderSteps
from viz_core.pretrained import CheckpointError, Translation, available

PLAIN, ATTENTION, TRANSFORMER = "seq2seq-en-fr", "bahdanau-en-fr", "transformer-en-fr"
MODELS = (PLAIN, ATTENTION, TRANSFORMER)
LIKELIEST = 6  # next words shown


def step_through(chapter: Chapter, request: Request, result: Translation) -> None:
    """One step of the decoder, chosen on a slider or by going on to the next; runs alone when only the step moves."""
    chapter.alone(lambda: _step(chapter, request, result))


def _step(chapter: Chapter, request: Request, result: Translation) -> None:
    steps: DecoderSteps = translation_look("steps", ATTENTION, request.text, request.beam)
    words, last = result.target_tokens, len(result.target_tokens)
    with chapter.card("step"):
        chapter.heading("step")
        step = 1
        if last > 1:
            with st.container(horizontal=True, vertical_alignment="bottom"):
                with st.container():
                    step = int(chapter.controls.slider("step", 1, last, 1))
                st.button(
                    chapter.words("next"),
                    key=chapter.controls.key("next"),
                    icon=":material/skip_next:",
                    on_click=_next,
                    args=(chapter.controls.key("step"), last),
                )
        st.markdown(_so_far(chapter, words, step - 1))
        _pictures(chapter, steps, step - 1, result)


def _pictures(chapter: Chapter, steps: DecoderSteps, step: int, result: Translation) -> None:
    """Weights over the source, the word chosen, and the two states behind them."""
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
            summary=", ".join(f"{escape(word)} {p:.2f}" for word, (_, p) in zip(readable, likeliest, strict=True)),
        )
    chapter.figure("states", figures.states_figure(steps, step, names), step=step + 1)


def _so_far(chapter: Chapter, words: tuple[str, ...], step: int) -> str:
    """The translation with the word of this step marked, and what is still to come pale."""
    before = " ".join(escape(word) for word in words[:step])
    after = " ".join(escape(word) for word in words[step + 1 :])
    return chapter.words(
        "so-far",
        before=before,
        word=escape(words[step]),
        after=f":gray[{after}]" if after else "",
    )


def _next(key: str, last: int) -> None:
    """One step on; from the last one back to the first."""
    st.session_state[key] = int(st.session_state.get(key, 1)) % last + 1


def side_by_side(chapter: Chapter, request: Request) -> None:
    """The same sentence by each model that ships, and each model's scores on the test sentences."""
    rows = [chapter.words("table.head")]
    for card in _cards().values():
        try:
            result = translation(card.name, request.text, request.beam)
        except CheckpointError as error:
            rows.append(chapter.words("table.missing", model=escape(card.title), reason=escape(str(error))))
            continue
        rows.append(
            chapter.words(
                "table.row",
                model=chapter.words(f"model.{card.name}"),
                text=escape(result.text),
                greedy=f"{card.scores['bleu_greedy']:.1f}",
                beam=f"{card.scores['bleu_beam_4']:.1f}",
                parameters=f"{card.config['parameters'] / 1e6:.1f} M",
            )
        )
    st.markdown("\n".join(rows))


def by_length(chapter: Chapter) -> None:
    """BLEU by length of the source for plain, attention and Transformer, as the training script measured it."""
    bins = {chapter.words(f"model.{name}"): card.training["bleu_by_length"] for name, card in _cards().items()}
    summary = "; ".join(
        f"{name}: " + ", ".join(f"{b['from']}–{b['to']} {b['bleu']:.0f}" for b in each) for name, each in bins.items()
    )
    chapter.figure("lengths", figures.lengths_figure(bins, chapter.words.group("figure")), summary=summary)


def how_trained(chapter: Chapter) -> None:
    """Curves and cards of the two recurrent models."""
    cards = _cards()
    curves = {chapter.words(f"model.{name}"): card.training["curve"] for name, card in cards.items()}
    summary = "; ".join(f"{name}: {curve[-1]['validation_loss']:.2f}" for name, curve in curves.items())
    chapter.figure("curves", figures.curves_figure(curves, chapter.words.group("figure")), summary=summary)
    for name in (ATTENTION, PLAIN):
        if name in cards:
            with st.expander(cards[name].title, icon=":material/description:"):
                st.markdown(cards[name].text)


def _cards() -> Mapping[str, Any]:
    """Cards of the three models, plain first, of those that are there."""
    there = {card.name: card for card in available()}
    return {name: there[name] for name in MODELS if name in there}
