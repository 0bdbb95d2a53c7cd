"""Tables of all heads, and narrow data beside broad data."""

from __future__ import annotations

import pandas as pd
import streamlit as st

from pages.heads.figures import sets_figure
from pages.heads.plot import Plot, measure_name
from ui.chapter.chapter import Chapter
from ui.compute.heads import HeadTable


def narrow_and_broad(chapter: Chapter, plot: Plot) -> None:
    """Draw the vertical measure on both sets."""
    tables = {
        name: {k: t for (texts, k), t in plot.scans.tables.items() if texts == name and plot.y in t.measures}
        for name in ("narrow", "broad")
    }
    shared = [kind for kind in tables["narrow"] if kind in tables["broad"]]
    if not shared:
        chapter.text("one-set")
        return
    chapter.text(f"sets.{plot.scans.reads}", narrow=plot.scans.texts["narrow"], broad=plot.scans.texts["broad"])
    narrow, broad = ({kind: tables[name][kind] for kind in shared} for name in ("narrow", "broad"))
    labels = chapter.words.group("figure")
    name = measure_name(chapter, plot.y, plot.scans.pictures)
    chapter.figure("sets", sets_figure(narrow, broad, plot.y, labels), measure=name)


def table_section(chapter: Chapter, plot: Plot) -> None:
    """Draw all means, with a download of all numbers."""
    means, localized = _means(chapter, plot), st.column_config.NumberColumn(format="localized")
    st.dataframe(means, hide_index=True, column_config=dict.fromkeys(list(means)[3:], localized))
    st.caption(f"`{plot.scans.command}`")
    chapter.download_table("heads", lambda: long_table(_of_set(plot)))


def _of_set(plot: Plot) -> dict[str, HeadTable]:
    return {kind: table for (texts, kind), table in plot.scans.tables.items() if texts == plot.texts}


def _means(chapter: Chapter, plot: Plot) -> pd.DataFrame:
    names = chapter.words.group("column")
    rows = []
    for kind, table in _of_set(plot).items():
        titles = {name: measure_name(chapter, name, plot.scans.pictures) for name in table.measures}
        means = {title: table.part(name, "mean").round(3) for name, title in titles.items()}
        for place, (layer, head) in enumerate(table.heads):
            row = {names["maps"]: chapter.words(f"figure.{kind}"), names["layer"]: layer + 1, names["head"]: head + 1}
            rows.append(row | {name: values[place] for name, values in means.items()})
    return pd.DataFrame(rows)


def long_table(tables: dict[str, HeadTable]) -> pd.DataFrame:
    """A row for each head and measure."""
    parts = ("mean", "low", "high", "chance", "p5", "p50", "p95", "p100")
    return pd.DataFrame(
        {"maps": kind, "layer": layer + 1, "head": head + 1, "measure": name}
        | {part: table.part(name, part)[place] for part in parts}
        for kind, table in tables.items()
        for name in table.measures
        for place, (layer, head) in enumerate(table.heads)
    )
