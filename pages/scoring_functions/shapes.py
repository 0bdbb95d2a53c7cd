"""Shapes: a product of batches, with one entry followed back."""

from __future__ import annotations

from functools import partial
from typing import Any

import streamlit as st

from pages.scoring_functions.product_figure import MatrixEntry, product_figure
from ui.chapter.chapter import Chapter
from viz_core.lessons.scoring_functions.book_examples import whole_number_product


def shapes(chapter: Chapter) -> None:
    """(b, n, m) x (b, m, p) -> (b, n, p), with one entry followed back."""
    controls = chapter.controls
    chapter.text("shapes")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        b, n, m = (int(controls.number(name, 1, 6, value)) for name, value in (("b", 2), ("n", 3), ("m", 4)))
        inner, p = (int(controls.number(name, 1, 6, value)) for name, value in (("inner", 4), ("p", 6)))
    try:
        product = whole_number_product(b, n, m, inner, p)
    except ValueError:
        st.warning(chapter.words("no-product", b=b, n=n, m=m, inner=inner, p=p), icon=":material/block:")
        return
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        sheet, row, column = (
            int(controls.number(name, 1, most, min(start, most))) - 1
            for name, most, start in (("sheet", b, 1), ("i", n, 2), ("j", p, 3))
        )
    names = chapter.words.group("figure")
    entry = MatrixEntry(sheet, row, column)
    factors, value = product.factors(*entry), int(product.Z[entry])
    values: dict[str, Any] = {
        "terms": " + ".join(f"{_factor(x)} \\cdot {_factor(y)}" for x, y in factors),
        "value": value,
    }
    values |= {"b": b, "n": n, "m": m, "p": p, "sheet": sheet + 1, "i": row + 1, "j": column + 1}
    chapter.text("product", **values)
    chapter.figure("product", partial(product_figure, product.X.numpy(), product.Y.numpy(), entry, names), **values)
    chapter.source_card("product", whole_number_product(2, 3, 4, 4, 6).Z.shape)
    with chapter.claim_row("claims-shapes"):
        chapter.claim("sheets", product.sheet_error, 0.0, b=b)
        chapter.claim("entry", abs(value - sum(x * y for x, y in factors)), 0.0)


def _factor(value: float) -> str:
    return f"({int(value)})" if value < 0 else str(int(value))
