"""What came of a run: what the model said, what the recording holds, and what must be true of its maps."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from asking.hub import HubRequest
from pages.model_lab.questions import CLAIMED_ROWS, recorded_bytes
from ui.chapter import Chapter
from ui.contents import page
from ui.controls import escape
from ui.models import ask
from viz_core.figures.bars import bars_figure
from viz_core.hub import HubCard, HubRun, human_bytes


def outcome(chapter: Chapter, card: HubCard, asked: HubRequest, run: HubRun) -> None:
    """What the model made of its input, and what the recording holds."""
    words = chapter.words
    if run.image is not None:
        st.image(run.image, width=260, caption=words("seen"))
    if card.head == "words":
        written = escape(run.text.strip()).replace("\n", "  \n")
        st.markdown(words("written", text=written) if written else words("nothing-written"))
    whole = sum(4 * call.num_heads * call.num_queries * call.num_keys for call in run.trace)
    tokens = len(run.tokens) + len(run.target_tokens)
    notes = [
        words(
            "measured",
            tokens=f"{tokens:,}",
            heads=f"{sum(call.num_heads for call in run.trace):,}",
            held=human_bytes(ask(asked, recorded_bytes)),
            whole=human_bytes(whole),
        )
    ]
    if not run.complete:
        notes.append(words("incomplete"))
    st.caption("  \n".join(notes))
    if run.labels:
        top = run.labels[:8]
        names = [label.text for label in top]
        chapter.figure(
            "labels",
            bars_figure(
                names, [label.probability for label in top], names[0], words("figure.class"), words.group("figure")
            ),
            first=escape(names[0]),
            probability=f"{top[0].probability:.2f}",
        )


def claims(chapter: Chapter, card: HubCard, run: HubRun, residuals: Callable[[], dict[str, float]]) -> None:
    """What must be true of these maps; of long ones the last rows are taken, which are the hardest."""
    with chapter.claims():
        rows = min(CLAIMED_ROWS, max(call.num_queries for call in run.trace))
        tolerance = 1e-5 if card.precision == "float32" else 1e-3
        heads = sum(call.num_heads for call in run.trace)
        chapter.claim("rows", lambda: residuals()["rows"], tolerance, heads=f"{heads:,}", rows=rows)
        if card.kind in ("decoder", "encoder-decoder"):
            chapter.claim("future", lambda: residuals()["future"], 0.0)


def link_to_vision(chapter: Chapter, card: HubCard) -> None:
    """A way from the lab to the vision chapter, with this model open there."""
    label, asks = chapter.words("open-vision"), {"vt-lab": card.name}
    st.page_link(page("vision-transformer"), label=label, icon=":material/arrow_forward:", query_params=asks)
