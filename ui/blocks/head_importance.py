"""The importance of each head, measured over the whole test split: a grid that switches heads off and on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from ui.blocks.heads_off import toggle_head
from ui.chapter.chapter import Chapter
from ui.compute.head_importance import HeadImportance, HeadWorth, gradient_agreement
from ui.text.head_names import HeadNames, head_name, head_title, layer_name
from ui.text.numbers import localised
from ui.text.words import Words
from ui.widgets.figure_style import SIGNED_SCALE, WEIGHTS_SCALE, lay_out


def head_importance_grid(
    chapter: Chapter, model: str, measured: HeadImportance | None, heads: HeadNames, off: Sequence[str]
) -> None:
    """Draw the grid, with the measure and the order that the reader chooses."""
    if measured is None:
        chapter.text("worth-unmeasured", model=model)
        return
    significant = [head for head in measured.heads if head.sure]
    better = [head for head in significant if head.without is not None and head.without.value > 0]
    numbers = {
        "sure": len(significant),
        "heads": len(measured.heads),
        "better": len(better),
        "chance": round(len(measured.heads) / 20),
    }
    chapter.text("worth", base=f"{measured.base:.1f}", examples=f"{measured.examples:,}", **numbers)
    count = len(measured.heads)
    measures = [measure for measure in ("without", "alone", "gradient") if len(_values(measured, measure)) == count]
    measure = chapter.controls.choice("measure", measures, measures[0])
    ordered = chapter.controls.toggle("ordered")
    only_significant = chapter.controls.toggle("only-sure")
    values = _values(measured, measure)
    lowest = min(values, key=lambda head: values[head])
    chapter.figure(
        "worth",
        _worth_figure(measured, measure, ordered, only_significant, set(heads.read(off)), chapter.words),
        on_click=lambda point: toggle_head(chapter, heads, str(point["customdata"][2]), int(point["customdata"][3])),
        measure=chapter.words(f"option.{measure}"),
        lowest=_title(lowest),
    )
    agreement = gradient_agreement(measured)
    chapter.finding("gradient-agrees", agreement > 0.5, correlation=f"{agreement:.2f}")


def _values(measured: HeadImportance, measure: str) -> dict[HeadWorth, float]:
    """Return the measured value of each head that has one."""
    values = {head: getattr(head, measure) for head in measured.heads}
    return {head: each if measure == "gradient" else each.value for head, each in values.items() if each is not None}


def _title(head: HeadWorth) -> str:
    return head_title(head_name(head.site, head.head))


def _worth_figure(
    measured: HeadImportance,
    measure: str,
    ordered: bool,
    only_significant: bool,
    off: set[tuple[str, int]],
    words: Words,
) -> go.Figure:
    """Draw a row per layer and a cell per head, in their order or by value; heads that are off are marked."""
    values, labels = _values(measured, measure), words.group("figure")
    sites = list(dict.fromkeys(head.site for head in measured.heads))
    rows = [[head for head in values if head.site == site] for site in sites]
    if ordered:
        rows = [sorted(row, key=lambda head: values[head], reverse=measure == "gradient") for row in rows]
    cells = [[values[head] if head.sure or not only_significant else np.nan for head in row] for row in rows]
    limit = max(abs(value) for value in values.values())
    signed = measure != "gradient"
    figure = go.Figure(
        go.Heatmap(
            z=np.array(cells, dtype=np.float32),
            y=[head_title(layer_name(site)) for site in sites],
            x=list(range(1, len(rows[0]) + 1)),
            text=[[f"{h.head + 1} ×" if (h.site, h.head) in off else str(h.head + 1) for h in row] for row in rows],
            texttemplate="%{text}",
            customdata=[
                [[_title(h), localised(_with_interval(h, measure), words.language), h.site, h.head] for h in row]
                for row in rows
            ],
            zmin=-limit if signed else 0,
            zmax=limit,
            xgap=2,
            ygap=2,
            colorscale=SIGNED_SCALE if signed else WEIGHTS_SCALE,
            hoverongaps=False,
            hovertemplate="%{customdata[0]}: %{customdata[1]}<extra></extra>",
            colorbar={"title": labels[measure], "thickness": 12},
        )
    )
    title = labels["by-worth"] if ordered else labels["head"]
    return lay_out(figure, title, labels["layer"], height=90 + 36 * len(sites), yaxis={"autorange": "reversed"})


def _with_interval(head: HeadWorth, measure: str) -> str:
    """Return the measured value with its interval."""
    if measure == "gradient":
        return f"{head.gradient:.3f}"
    value, low, high = getattr(head, measure)
    return f"{value:+.2f} ({low:+.2f} … {high:+.2f})"
