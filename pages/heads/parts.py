"""The card of one head, the tables of all heads, and narrow data beside broad data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import numpy as np
import streamlit as st

from pages.heads.live import link_to_lab
from pages.heads.plot import Plot, marked, measure_name, worth_unit
from ui.chapter.chapter import Chapter
from ui.compute.heads import Quoted
from ui.compute.models import evaluate_model
from ui.text.head_names import head_place
from ui.text.markdown import escape
from ui.text.numbers import localised
from viz_core.pretrained.samples import scan_picture

if TYPE_CHECKING:
    from viz_core.lab.circuits import HeadCircuits
import pandas as pd
from PIL import Image

from pages.heads.figures import sets_figure
from ui.blocks.over_picture import weights_image
from ui.compute.heads import HeadTable, head_scans
from viz_core.maps.register import beyond_chance


def card_of_head(chapter: Chapter, plot: Plot) -> None:
    """Draw the card of the chosen head."""
    table, head, words = plot.table, plot.head, chapter.words
    place, kind = head_place(head.layer + 1, head.head + 1), words(f"figure.{head.kind}")
    st.markdown(f"**{place} · {kind}**")
    role = table.role_of(head.place)
    if role is None:
        chapter.text("no-role")
    else:
        chapter.text("role", role=measure_name(chapter, role[0], plot.scans.pictures), beyond=f"{role[1]:.2f}")
    if "worth" in table.measures and not np.isnan(table.part("worth", "low")[head.place]):
        numbers = {part: f"{table.part('worth', part)[head.place]:+.3f}" for part in ("mean", "low", "high")}
        chapter.text("worth", unit=worth_unit(chapter, plot.scans), **numbers)
    else:
        chapter.text("no-worth")
    measure = plot.y if plot.table.quoted.get(plot.y) and plot.table.quoted[plot.y][head.place] else "entropy"
    chapter.text("examples", measure=measure_name(chapter, measure, plot.scans.pictures))
    _examples(table.quoted[measure][head.place], plot.scans.reads != "text", words.language)
    from viz_core.lab.circuits import head_circuits

    _circuits(chapter, evaluate_model(plot.model.spec, head_circuits, head.site, head.head))
    chosen = {chapter.controls.key(name): value for name, value in plot.address.items()}
    given = [key for name in ("texts", "own", "y") if (key := chapter.controls.key(name)) in st.query_params]
    chosen |= {key: st.query_params[key] for key in given}
    address = "?" + urlencode({**chosen, "head": head.link, chapter.controls.key("open-card"): "true"})
    chapter.text("address", address=address)
    cited = f"Attention Atlas: {plot.model.title}, {place} ({kind}). {plot.scans.command}"
    st.code(cited, language=None, wrap_lines=True)
    link_to_lab(chapter, plot.model)


def _examples(quoted: Sequence[Quoted], pictures: bool, language: str) -> None:
    """Show the texts or pictures at percentiles."""
    values = [localised(f"{one.value:.3f}", language) for one in quoted]
    if pictures:
        captions = [f"{one.percentile} · {value}" for one, value in zip(quoted, values, strict=True)]
        st.image([scan_picture(one.text) for one in quoted], width=100, caption=captions, alt=captions)
        return
    lines = [f"- {one.percentile} · **{v}** · “{escape(one.text)}”" for one, v in zip(quoted, values, strict=True)]
    st.markdown("\n".join(lines))


def _circuits(chapter: Chapter, found: HeadCircuits) -> None:
    """List the tokens of each direction; say why a circuit has none."""
    for kind in ("QK", "OV"):
        directions = [each for each in found.directions if each.kind == kind]
        if directions:
            chapter.text(f"circuit.{kind}")
            st.markdown("\n".join(f"- {marked(each.first)} → {marked(each.second)}" for each in directions))
        else:
            chapter.text("no-circuit", kind=kind)


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


def sources(chapter: Chapter) -> None:
    """Draw the cards, each with the same computed here."""
    chapter.sources({"kappa": beyond_chance(0.6, 0.2)})


def gallery_picture() -> Image.Image:
    """Shares of attention of the reader's heads: a row a head, a column a role."""
    table = head_scans("reader-en").tables["narrow", "encoder-self"]
    roles = ("previous", "next", "diagonal", "first", "separator", "punctuation", "same-word")
    return weights_image(np.stack([table.part(role, "mean") for role in roles]).astype(np.float32))
