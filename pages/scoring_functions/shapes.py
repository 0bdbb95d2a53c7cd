"""Shapes: a product of batches, with one entry followed back."""

from __future__ import annotations

from functools import partial
from typing import Any

import streamlit as st
import torch

from pages.scoring_functions.product_figure import MatrixEntry, product_figure
from ui.chapter.chapter import Chapter
from viz_core.attention.scores import batch_product


def shapes(chapter: Chapter) -> None:
    """(b, n, m) x (b, m, p) -> (b, n, p), with one entry followed back."""
    controls = chapter.controls
    chapter.text("shapes")
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        b, n, m = (int(controls.number(name, 1, 6, value)) for name, value in (("b", 2), ("n", 3), ("m", 4)))
        inner, p = (int(controls.number(name, 1, 6, value)) for name, value in (("inner", 4), ("p", 6)))
    X, Y = _whole_numbers(b, n, m, 0), _whole_numbers(b, inner, p, 1)
    try:
        Z = batch_product(X, Y)
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
    parts = zip(X[sheet, row].tolist(), Y[sheet, :, column].tolist(), strict=True)
    told: dict[str, Any] = {
        "terms": " + ".join(f"{_factor(x)} \\cdot {_factor(y)}" for x, y in parts),
        "value": int(Z[entry]),
    }
    told |= {"b": b, "n": n, "m": m, "p": p, "sheet": sheet + 1, "i": row + 1, "j": column + 1}
    chapter.text("product", **told)
    chapter.figure("product", partial(product_figure, X.numpy(), Y.numpy(), entry, names), **told)
    chapter.source_card("product", batch_product(torch.ones(2, 3, 4), torch.ones(2, 4, 6)).shape)
    with chapter.claim_row("claims-shapes"):
        one_by_one = torch.stack([X[i] @ Y[i] for i in range(b)])
        chapter.claim("sheets", float((Z - one_by_one).abs().max()), 0.0, b=b)
        chapter.claim("entry", abs(float(Z[entry]) - sum(X[sheet, row].mul(Y[sheet, :, column]).tolist())), 0.0)


def _whole_numbers(b: int, rows: int, columns: int, seed: int) -> torch.Tensor:
    """Small whole numbers, which can be multiplied in the head."""
    return torch.randint(-2, 4, (b, rows, columns), generator=torch.Generator().manual_seed(seed)).float()


def _factor(value: float) -> str:
    return f"({int(value)})" if value < 0 else str(int(value))
