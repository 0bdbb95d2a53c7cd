"""What each head is worth, as measured over the whole test split: a grid that switches heads off and on."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go

from pages.transformer.figures import Labels
from pages.transformer.heads_off import head_name, toggle
from ui.chapter import Chapter
from viz_core.figures.style import SIGNED_SCALE, WEIGHTS_SCALE, lay_out
from viz_core.lessons.transformer.heads_off import gradient_agreement
from viz_core.pretrained.head_importance import HeadImportance, HeadWorth, head_importance


def worth(chapter: Chapter, name: str, off: Sequence[str]) -> None:
    """The grid, by the measure and in the order that the reader chooses."""
    measured = head_importance(name)
    if measured is None:
        chapter.text("worth-unmeasured", model=name)
        return
    sure = [head for head in measured.heads if _sure(head)]
    better = [head for head in sure if head.without is not None and head.without.value > 0]
    numbers = {
        "sure": len(sure),
        "heads": len(measured.heads),
        "better": len(better),
        "chance": round(len(measured.heads) / 20),
    }
    chapter.text("worth", base=f"{measured.base:.1f}", examples=f"{measured.examples:,}", **numbers)
    every = len(measured.heads)
    measures = [measure for measure in ("without", "alone", "gradient") if len(_values(measured, measure)) == every]
    measure = chapter.controls.choice("measure", measures, measures[0])
    ordered = chapter.controls.toggle("ordered")
    only_sure = chapter.controls.toggle("only-sure")
    labels = chapter.words.group("figure")
    values = _values(measured, measure)
    lowest = min(values, key=lambda head: values[head])
    chapter.figure(
        "worth",
        _worth_figure(measured, measure, ordered, only_sure, off, labels),
        on_click=lambda point: toggle(chapter, point["customdata"][0]),
        measure=chapter.words(f"option.{measure}"),
        lowest=head_name(lowest.site, lowest.head),
    )
    agreement = gradient_agreement(measured)
    chapter.finding("gradient-agrees", agreement > 0.5, correlation=f"{agreement:.2f}")


def _sure(head: HeadWorth) -> bool:
    """Whether the interval of the score without it does not hold 0."""
    return head.without is not None and (head.without.low > 0 or head.without.high < 0)


def _values(measured: HeadImportance, measure: str) -> dict[HeadWorth, float]:
    """What was measured of each head."""
    found = {head: getattr(head, measure) for head in measured.heads}
    return {head: each if measure == "gradient" else each.value for head, each in found.items() if each is not None}


def _worth_figure(
    measured: HeadImportance, measure: str, ordered: bool, only_sure: bool, off: Sequence[str], labels: Labels
) -> go.Figure:
    """A row a layer, a cell a head, in their order or by what they are worth; those that are off are marked."""
    values = _values(measured, measure)
    sites = list(dict.fromkeys(head.site for head in measured.heads))
    rows = [[head for head in values if head.site == site] for site in sites]
    if ordered:
        rows = [sorted(row, key=lambda head: values[head], reverse=measure == "gradient") for row in rows]
    shown = [[values[head] if _sure(head) or not only_sure else np.nan for head in row] for row in rows]
    limit = max(abs(value) for value in values.values())
    signed = measure != "gradient"
    figure = go.Figure(
        go.Heatmap(
            z=np.array(shown, dtype=np.float32),
            y=[head_name(site, 0).split(".")[0] for site in sites],
            x=list(range(1, len(rows[0]) + 1)),
            text=[[_cell(head, off) for head in row] for row in rows],
            texttemplate="%{text}",
            customdata=[[[head_name(head.site, head.head), _interval(head, measure)] for head in row] for row in rows],
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


def _cell(head: HeadWorth, off: Sequence[str]) -> str:
    return f"{head.head + 1} ×" if head_name(head.site, head.head) in off else str(head.head + 1)


def _interval(head: HeadWorth, measure: str) -> str:
    if measure == "gradient":
        return f"{head.gradient:.3f}"
    value, low, high = getattr(head, measure)
    return f"{value:+.2f} ({low:+.2f} … {high:+.2f})"
