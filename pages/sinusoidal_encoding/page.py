"""Sinusoidal encoding: the table, its columns, its binary cousin, its similarity, and a sentence it is added to."""

import streamlit as st

from pages.sinusoidal_encoding.columns import WIDEST, code, curves
from pages.sinusoidal_encoding.figures import table_figure, table_heatmap
from pages.sinusoidal_encoding.predictions import COLUMN, THE_WAVE
from pages.sinusoidal_encoding.properties import claims, similarity
from pages.sinusoidal_encoding.sentence import sentence
from pages.sinusoidal_encoding.sources import sources
from ui.chapter.chapter import Chapter
from ui.compute.slots import cached
from viz_core.lessons.sinusoidal_encoding.added import add_positions
from viz_core.lessons.sinusoidal_encoding.properties import (
    float64_table,
    largest_change,
    measured_wavelengths,
    offset_error,
    similarity_by_offset,
    wavelengths,
)
from viz_core.positional import PositionalEncoding, angular_frequencies, sinusoidal_table

encoding_table = cached()(float64_table)

chapter = Chapter("sinusoidal-encoding")
names = chapter.words.group("figure")
chapter.question()
hidden_column = COLUMN if chapter.hides_answer("wave", THE_WAVE) else None
with chapter.card("table"):
    for_d, for_n, for_base = st.columns([2, 2, 1], gap="medium")
    with for_d:
        d = int(chapter.controls.slider("d", 2, WIDEST, 32))
    with for_n:
        n = int(chapter.controls.slider("n", 1, 2000, 60))
    with for_base:
        base = chapter.controls.number("base", 1, 1_000_000, 10_000, 1000)
    table = encoding_table(n, d, base)
    lengths = wavelengths(d, base)
    first = [f"{value:.6f}" for value in table[min(1, n - 1), :4].tolist()]
    chapter.heatmap("table", table_heatmap(table, base, names), n=n, d=d, first=first, longest=f"{lengths[-1]:,.0f}")
    if n > 1:
        longest = f"{lengths[-1]:,.2f}"
        chapter.finding("longer", bool(lengths[-1] > lengths[0]), longest=longest)
        change = largest_change(table[:, -2:])
        chapter.finding("still", change < 0.1, change=f"{change:.2g}", n=f"{n:,}")

chapter.flush()

chapter.exercise("similar")
chapter.text("mathematics")
claims(chapter, table, base)

chapter.tabs(
    curves=lambda: curves(chapter, table, base, hidden_column),
    code=lambda: code(chapter, table, base),
    similarity=lambda: chapter.lazy("similarity", lambda: similarity(chapter, table), 560),
    sentence=lambda: sentence(chapter),
)

sources(chapter)
chapter.code(
    PositionalEncoding,
    sinusoidal_table,
    angular_frequencies,
    measured_wavelengths,
    similarity_by_offset,
    offset_error,
    add_positions,
)
chapter.downloads(
    {
        "table": table.numpy(),
        "wavelengths": lengths.numpy(),
        "similarity": lambda: similarity_by_offset(table).numpy(),
    },
    figure=lambda: table_figure(table, names),
)
chapter.next()
