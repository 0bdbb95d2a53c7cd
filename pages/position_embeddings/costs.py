"""What the schemes cost, and which of them extend beyond the length they were trained for."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from pages.position_embeddings.tokens import WIDTH, TokenInputs
from ui.chapter.chapter import Chapter
from viz_core.positional.entry import SchemeSizes
from viz_core.positional.register import SCHEMES

LENGTHS = (16, 64, 256, 1024, 4096)  # squares, so that each is also a square grid


def costs(chapter: Chapter, inputs: TokenInputs) -> None:
    """Parameters and memory of each scheme as functions of n and h, and whether it extends beyond its length."""
    chapter.text("costs")
    with st.container(horizontal=True, gap="medium"):
        n = chapter.controls.select_slider("n", LENGTHS, 256)
        h = chapter.controls.select_slider("cost-heads", (1, 2, 4, 8, 16), 8)
    side = round(n**0.5)
    sizes = SchemeSizes(n, WIDTH, h, side, side, per_head=inputs.layer.sizes.per_head)
    number = st.column_config.NumberColumn(format="localized")
    wide = st.column_config.TextColumn(width="medium")
    columns = {chapter.words(f"column.{name}"): number for name in ("parameters", "stored", "computed")}
    st.dataframe(
        _cost_table(chapter, sizes),
        hide_index=True,
        height="content",
        column_config={**columns, chapter.words("column.formula"): wide},
    )
    _length_limits(chapter)
    one = n**2 * WIDTH // h
    chapter.text("shared-cost", n=f"{n:,}", h=h, own=f"{h * one:,}", shared=f"{one:,}")


def _cost_table(chapter: Chapter, sizes: SchemeSizes) -> pd.DataFrame:
    words = chapter.words
    rows = []
    for scheme in SCHEMES:
        cost = scheme.cost(sizes)
        rows.append(
            {
                words("column.scheme"): words(f"option.{scheme.name}"),
                words("column.formula"): words(f"formula.{scheme.name}"),
                words("column.parameters"): cost.parameters,
                words("column.stored"): cost.stored_bytes,
                words("column.computed"): cost.computed_bytes,
            }
        )
    return pd.DataFrame(rows)


def _length_limits(chapter: Chapter) -> None:
    """Whether each scheme is defined at any length, and why, in a table whose lines may break."""
    words = chapter.words
    rows = [[words(f"column.{name}") for name in ("scheme", "extends", "why")], ["---"] * 3]
    for scheme in SCHEMES:
        defined = words("yes" if scheme.extrapolates else "no")
        rows.append([words(f"option.{scheme.name}"), defined, words(f"extends.{scheme.name}")])
    st.markdown("\n".join(f"| {' | '.join(row)} |" for row in rows))
