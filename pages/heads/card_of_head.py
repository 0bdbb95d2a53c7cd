"""The card of one head: its role, its worth, texts at percentiles, and what its matrices read and write."""

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
from viz_core.pretrained.scan_inputs import scan_picture

if TYPE_CHECKING:  # it brings the hub's libraries, which only an open card needs
    from serving.requests.head_circuits import HeadCircuits


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
    from serving.requests.head_circuits import head_circuits

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
