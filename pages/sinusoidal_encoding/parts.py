"""The sinusoidal chapter's further looks: columns as curves, the binary code, similarity, a sentence."""

from __future__ import annotations

import streamlit as st
import torch
from jaxtyping import Float
from torch import Tensor

from pages.sinusoidal_encoding import figures
from ui.chapter import Chapter
from ui.controls import escape
from ui.models import translator
from viz_core.figures.heatmap import signed_heatmap
from viz_core.figures.style import CATEGORIES
from viz_core.lessons.sinusoidal_encoding import properties
from viz_core.lessons.sinusoidal_encoding.added import add_positions, find_twins
from viz_core.pretrained import CheckpointError, TextError, Translator

MODEL = "transformer-en-fr"
WIDEST = 512  # columns a table can have here
BOOKS_COLUMNS = (6, 7, 8, 9)
MOST_TOKENS = 64  # more rows than this are too thin to carry their words
PUBLISHED_OFFSETS = (1, 2, 5, 10, 20, 59)

Table = Float[Tensor, "positions num_hiddens"]


def claims(chapter: Chapter, table: Table, base: float) -> None:
    """What must be true of the table, each with its residual; what an odd width or a single position changes."""
    n, d = table.shape
    with chapter.claims():
        if d % 2:
            chapter.claim("norm-odd", properties.norm_error(table, base), 1e-10, pairs=d // 2)
        else:
            chapter.claim("norm", properties.norm_error(table, base), 1e-10, norm=d // 2)
        if n > 1:
            lengths = properties.wavelengths(d, base)[: d // 2 * 2]
            span = {"shortest": f"{lengths[0]:,.2f}", "longest": f"{lengths[-1]:,.2f}"}
            chapter.claim("wavelength", properties.wavelength_error(table, base), 1e-9, **span)
            starts = len(properties.start_positions(n))
            chapter.claim("offset", properties.offset_error(table), 1e-10, count=starts)
            offset, distance = properties.nearest_rows(table)
            near = {"n": f"{n:,}", "offset": offset, "distance": f"{distance:.2g}"}
            chapter.claim("distinct", properties.num_coinciding(table), 0, **near)
    if d % 2:
        chapter.text("odd", paired=d - 1)
    if n == 1:
        chapter.text("one")


def curves(chapter: Chapter, table: Table, base: float) -> None:
    """Chosen columns; the book's to begin with. A choice outlives a table that is too narrow for it."""
    d, most = table.shape[1], len(CATEGORIES)
    chosen = chapter.controls.several("columns", range(WIDEST), BOOKS_COLUMNS, most)
    if not chosen:
        chapter.text("columns", most=most)
        return
    columns = [column for column in chosen if column < d] or list(range(d)[:4])
    missing = ", ".join(str(column) for column in chosen if column >= d)
    if missing:
        st.caption(chapter.words("columns.missing", last=d - 1, missing=missing))
    lengths = properties.wavelengths(d, base)
    figure = figures.curve_figure(table, columns, base, chapter.words.group("figure"))
    summary = ", ".join(f"{column}: {lengths[column]:,.2f}" for column in columns)
    chapter.figure("curves", figure, summary=summary, n=len(table), factor=f"{base ** (2 / d):.3f}")


def code(chapter: Chapter, table: Table, base: float) -> None:
    """Positions in binary beside columns of the table."""
    shown = min(len(table), figures.CODE_POSITIONS)
    bits = properties.binary_code(shown).shape[1]
    columns = properties.doubling_columns(bits, table.shape[1], base)
    chapter.text("code")
    names = ", ".join(str(column) for column in columns if column is not None)
    figure = figures.binary_figure(table, base, chapter.words.group("figure"))
    chapter.figure("code", figure, last=shown - 1, columns=names)
    if None in columns:
        st.caption(chapter.words("code.gaps"))


def similarity(chapter: Chapter, table: Table) -> None:
    """Every position with every other, and the one curve behind it."""
    n, names = len(table), chapter.words.group("figure")
    curve = properties.similarity_by_offset(table)
    left, right = st.columns(2)
    with left:
        shown = min(n, figures.MAP_POSITIONS)
        largest = f"{table.square().sum(dim=1).max():.2f}"
        chapter.heatmap("similarity", figures.similarity_heatmap(table, names), shown=shown, largest=largest)
        if shown < n:
            st.caption(chapter.words("similarity.first", shown=shown, n=f"{n:,}"))
    with right:
        summary = ", ".join(f"k = {k}: {curve[k]:.4f}" for k in PUBLISHED_OFFSETS if k < n)
        figure = figures.offset_figure(table, names)
        chapter.figure("offsets", figure, summary=summary, rises=properties.rises(curve), steps=f"{n - 1:,}")


def sentence(chapter: Chapter) -> None:
    """Embedding, position and their sum for what the reader types."""
    start = chapter.words("sentence.start")
    text = chapter.controls.text("sentence", start, placeholder=chapter.words("placeholder"))
    if not text.strip():
        st.info(chapter.words("sentence.empty"), icon=":material/edit:")
        return
    try:
        model = translator(MODEL)
        ids = model.encode(text)
    except TextError as error:
        st.warning(escape(str(error)), icon=":material/edit:")
    except CheckpointError as error:
        st.error(chapter.common("no-model", reason=escape(str(error))), icon=":material/inventory_2:")
    except ValueError as error:  # an absent device; the message names those there are
        st.error(escape(str(error)), icon=":material/memory:")
    else:
        _show_sum(chapter, model, ids)


def _show_sum(chapter: Chapter, model: Translator, ids: list[int]) -> None:
    with torch.inference_mode():
        added = add_positions(model.model.encoder.embed(torch.tensor(ids, device=model.device)[None])[0])
    tokens = model.readable_tokens(ids)
    chapter.text("sentence", d=added.total.shape[1])
    twins = find_twins(ids, added)
    if twins is None:
        chapter.text("no-twins")
    else:
        first, second, before, after = twins
        values = {"first": first, "second": second, "before": f"{before:.3f}", "after": f"{after:.3f}"}
        chapter.text("twins", token=escape(tokens[first]), **values)
    shown = min(len(ids), MOST_TOKENS)
    limit = float(added.embedding[:shown].abs().quantile(0.99))  # a few outliers would pale all else
    names = chapter.words.group("figure")
    for name, part in added._asdict().items():
        chapter.heading(name)
        picture = signed_heatmap(part[:shown], names["token"], names["dimension"], tokens[:shown], limit)
        length = f"{part.norm(dim=1).mean():.2f}"
        chapter.heatmap(name, picture, count=shown, d=part.shape[1], length=length)
    if shown < len(ids):
        st.caption(chapter.words("sentence.first", shown=shown, count=len(ids)))
