"""Two rounds: the reader replaces one head of a trained model, or sets the patterns of both."""

from __future__ import annotations

import streamlit as st

from pages.learning.chosen_keys import choose_keys, draw_pattern, keys_of, stored_moves
from pages.learning.two_heads import NAMED, OFF, TRAINED, outcome, score, sequence
from ui.chapter.chapter import Chapter
from ui.text.head_names import layer_place
from viz_core.lessons.learning.two_heads import PERIOD, Outcome, Pattern

CLICKED = "clicked"
_START = (1, PERIOD)  # the first query whose key matters, in each layer


def be_the_head(chapter: Chapter) -> None:
    """Let the reader choose the keys of one head; compare the loss with that of the trained head and without it."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        layer = chapter.controls.choice("player", (1, 2), 2) - 1
        seed = int(chapter.controls.slider("play-seed", 0, 9, 0))
    letters, name = sequence(seed), f"play-{layer + 1}"
    chapter.text("play", layer=layer + 1)

    def play(pattern: Pattern) -> Outcome:
        return outcome(seed, *((pattern, TRAINED) if layer == 0 else (TRAINED, pattern)))

    yours = play(keys_of(stored_moves(chapter, name)))
    drawn, judged = st.columns([3, 2], gap="medium")
    with drawn:
        choose_keys(chapter, name, layer, letters, yours, _START[layer])
    with judged:
        _scores(chapter, yours, play(TRAINED), play(OFF))
        if chapter.controls.toggle("reveal"):
            draw_pattern(chapter, layer, letters, play(TRAINED))


def build_a_circuit(chapter: Chapter) -> None:
    """Let the reader set the pattern of both heads; compare the loss with that of the trained ones and without them."""
    controls = chapter.controls
    chapter.text("circuit")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        chosen = [
            controls.select("first-pattern", (OFF, *NAMED, CLICKED), OFF),
            controls.select("second-pattern", (OFF, TRAINED, *NAMED, CLICKED), OFF),
        ]
        seed = int(controls.slider("circuit-seed", 0, 9, 0))
    letters, names = sequence(seed), ("circuit-1", "circuit-2")
    moves = [stored_moves(chapter, name) for name in names]
    patterns = [keys_of(own) if what == CLICKED else what for what, own in zip(chosen, moves, strict=True)]
    yours = outcome(seed, *patterns)
    _scores(chapter, yours, outcome(seed, TRAINED, TRAINED), outcome(seed, OFF, OFF))
    for layer, column in enumerate(st.columns(2, gap="medium")):
        with column:
            st.markdown(f"**{layer_place(layer + 1)}**")
            if chosen[layer] == CLICKED:
                choose_keys(chapter, names[layer], layer, letters, yours, _START[layer])
            else:
                draw_pattern(chapter, layer, letters, yours)


def _scores(chapter: Chapter, yours: Outcome, trained: Outcome, without: Outcome) -> None:
    """Draw the three losses, and the share of the gap that the reader's pattern closes."""
    rows = [chapter.words("scores.head")]
    for who, made in (("yours", yours), ("trained", trained), ("off", without)):
        right = {"right": made.right, "count": len(made.predicted)}
        rows.append(chapter.words("scores.row", who=chapter.words(f"who.{who}"), loss=f"{made.loss:.2f}", **right))
    st.markdown("\n".join(rows))
    st.caption(chapter.words("scored", first=PERIOD + 2, last=2 * PERIOD))
    share = score(yours.loss, trained.loss, without.loss)
    if share is not None:
        st.markdown(chapter.words("score", share=f"{share:.0%}"))
