"""Next words of a model that writes."""

from __future__ import annotations

import hashlib

import streamlit as st

from serving.requests.hub import HubRequest
from ui.blocks.figures import bars_figure
from ui.blocks.translation import choose_token
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate
from ui.text.markdown import escape
from viz_core.hub import HubModel, HubRun, NextWord

_NEXT_WORDS = 12


def next_words(chapter: Chapter, request: HubRequest, run: HubRun) -> None:
    """Show the likeliest words after any of the last tokens."""
    read = run.decoder_tokens or run.tokens
    count = len(run.output)
    read, first = read[-count:], len(read) - count
    chapter.text("next")
    place = before_writing(run)
    if count > 1:
        tokens = [token.label for token in run.decoder_tokens or run.tokens]
        place = choose_token(chapter, "place", tokens, first, first + place) - first
    temperature = chapter.controls.slider("warmth", 0.1, 3.0, 1.0, 0.1)
    chapter.lazy("next-words", lambda: _likeliest(chapter, request, run, place, temperature), 900)


def before_writing(run: HubRun) -> int:
    """The place, among those with an output, after which the model wrote its first token; the last if it wrote none."""
    if run.target_tokens:
        return 0
    count = len(run.output)
    first = len(run.tokens) - count
    return run.num_prompt_tokens - 1 - first if first < run.num_prompt_tokens < len(run.tokens) else count - 1


def _likeliest(chapter: Chapter, request: HubRequest, run: HubRun, place: int, temperature: float) -> None:
    """The likeliest words after a token, drawn and listed."""
    read = run.decoder_tokens or run.tokens
    count = len(run.output)
    read, first = read[-count:], len(read) - count
    words = evaluate(request, HubModel.next_words, place, _NEXT_WORDS, temperature)
    after = run.target_tokens[place] if run.target_tokens else read[place + 1] if place + 1 < count else None
    names = [word.token.label for word in words]
    labels = chapter.words.group("figure")
    chapter.figure(
        "next",
        bars_figure(
            names, [word.probability for word in words], after.label if after else None, labels["next"], labels
        ),
        token=escape(read[place].label),
        number=first + place + 1,
        first=escape(names[0]),
        probability=f"{words[0].probability:.3f}",
        logit=f"{words[0].logit:.2f}",
        came=escape(after.label) if after else chapter.words("not-yet"),
        share=f"{sum(word.probability for word in words):.2f}",
    )
    table, number = _table(chapter, words), st.column_config.NumberColumn(format="localized")
    key = chapter.controls.key(f"logits-{_digest(names)}")
    st.dataframe(table, hide_index=True, key=key, column_config=dict.fromkeys(list(table)[1:], number))


def _table(chapter: Chapter, words: tuple[NextWord, ...]) -> dict[str, list[object]]:
    names = chapter.words.group("figure")
    return {
        names["next"]: [word.token.label for word in words],
        names["logit"]: [round(word.logit, 3) for word in words],
        names["probability"]: [round(word.probability, 5) for word in words],
    }


def _digest(names: list[str]) -> str:
    return hashlib.sha256("\0".join(names).encode()).hexdigest()[:8]
