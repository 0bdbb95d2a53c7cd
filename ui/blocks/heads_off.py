"""Heads switched off, by link and by button: the score without them, and a grid of the importance of each head."""

from collections.abc import Callable, Sequence

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from serving.requests.models import ModelSpec
from ui.chapter.chapter import Chapter
from ui.compute.heads import HeadImportance, HeadImportances, gradient_agreement
from ui.compute.slots import compute_cached
from ui.text.head_names import HeadNames, head_name, head_title, layer_name
from ui.text.numbers import localised, series
from ui.text.words import Words, current_language
from ui.widgets import traces
from ui.widgets.controls import Menu
from ui.widgets.figure_style import lay_out
from viz_core.pretrained.bleu import paired_bootstrap
from viz_core.trace import HeadsOff
from viz_core.view.map_group import MapGroup
from viz_core.view.state import ViewState

_MAX_NAMES = 6


def head_switches(chapter: Chapter, heads: HeadNames) -> tuple[str, ...]:
    """Draw the list of heads; return the names of those that are off. The URL holds them."""
    return tuple(chapter.controls.multiselect("without", heads.every, [], labels=head_title))


def heads_menu(chapter: Chapter, *others: str, lazy: bool = False) -> Menu:
    """Draw a popover for what changes the maps of a page.

    Args:
        others: texts that it has beside `head_switches` and `Chapter.contributions_choice`.
        lazy: draw its controls once it is open.
    """
    defaults = {"without": [], "quantity": "weights"} | dict.fromkeys(others, "")
    return chapter.controls.menu(chapter.common("heads-menu"), ":material/toggle_off:", defaults if lazy else None)


def name_heads(off: Sequence[str]) -> str:
    """Return the first of these heads in words, and how many there are if there are more."""
    first = series([head_title(name) for name in off[:_MAX_NAMES]], current_language())
    return first if len(off) <= _MAX_NAMES else f"{first} … ({len(off)})"


def head_buttons(
    chapter: Chapter, heads: HeadNames, groups: Sequence[MapGroup], view: ViewState, off: tuple[str, ...]
) -> None:
    """Draw buttons: the open head off or on, all others of its layer or of the model off, all on."""
    site, head = open_head(groups, view)
    if site not in dict(heads.sites):
        return
    is_off = (site, head) in heads.read(off)
    with st.container(key="switches"):
        for name, chosen, icon in (
            ("head-on" if is_off else "head-off", heads.toggled(off, site, head), ":material/toggle_off:"),
            ("only-of-layer", heads.but(site, head, of_layer=True), ":material/filter_1:"),
            ("only-this", heads.but(site, head, of_layer=False), ":material/looks_one:"),
            ("all-on", [], ":material/restart_alt:"),
        ):
            st.button(
                chapter.common(name, head=head_title(head_name(site, head), with_kind=False)),
                key=chapter.controls.key(f"do-{name}"),
                icon=icon,
                on_click=st.session_state.update,
                args=({chapter.controls.key("without"): chosen},),
                disabled=name == "all-on" and not off,
            )


def open_head(groups: Sequence[MapGroup], view: ViewState) -> tuple[str, int]:
    """Return site and number of the open head."""
    group = next(group for group in groups if group.id == view.group)
    return group.calls[view.layer].site, view.head


def toggle_head(chapter: Chapter, heads: HeadNames, site: str, head: int) -> None:
    """Switch a head off or on, in a callback before the page reruns."""
    key = chapter.controls.key("without")
    st.session_state[key] = heads.toggled(st.session_state.get(key) or [], site, head)


def score_examples(
    chapter: Chapter,
    model: ModelSpec[object],
    statistics: Callable[[HeadsOff, int, int], np.ndarray],
    score: Callable[[np.ndarray], float],
    off: HeadsOff,
    count: int,
    at_once: int,
) -> None:
    """Draw a button that computes the score with and without these heads, its progress, and a button that stops it.

    Args:
        statistics: returns the score's statistics, a row per example, with heads off and for a range of examples.
        score: computes the score from summed statistics.
        count: number of examples.
        at_once: number of examples between two steps of the progress.
    """
    key = chapter.controls.key("held-out")
    if not st.session_state.get(key):
        label = chapter.words("held-out-go", count=f"{count:,}")
        st.button(label, key=f"{key}-go", on_click=st.session_state.update, args=({key: True},))
        return
    place, starts = st.empty(), range(0, count, at_once)
    statistics_of: dict[HeadsOff, list[np.ndarray]] = {(): [], off: []}
    with place.container(horizontal=True, vertical_alignment="center"):
        bar = st.progress(0.0, chapter.words("held-out-at-work"))
        st.button(
            chapter.common("held-out-stop"), key=f"{key}-stop", on_click=st.session_state.update, args=({key: False},)
        )
        for start in starts:
            for heads, rows in statistics_of.items():
                rows.append(statistics(heads, start, start + at_once))
            bar.progress(min(1.0, (start + at_once) / count), chapter.words("held-out-at-work"))
    base, other = (np.concatenate(rows) for rows in statistics_of.values())
    value, low, high = compute_cached(lambda: paired_bootstrap(score, base, other), paired_bootstrap, (model, off))
    place.empty()
    total = score(base.sum(axis=0))
    numbers = {"base": f"{total:.1f}", "without": f"{total + value:.1f}"}
    signed = {"difference": value, "low": low, "high": high}
    values = numbers | {name: f"{number:+.1f}" for name, number in signed.items()}
    chapter.text("held-out", count=f"{count:,}", **values)
    chapter.finding("held-out-sure", low > 0 or high < 0)


def head_importance_grid(
    chapter: Chapter, model: str, measured: HeadImportances | None, heads: HeadNames, off: Sequence[str]
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


def _values(measured: HeadImportances, measure: str) -> dict[HeadImportance, float]:
    """Return the measured value of each head that has one."""
    values = {head: getattr(head, measure) for head in measured.heads}
    return {head: each if measure == "gradient" else each.value for head, each in values.items() if each is not None}


def _title(head: HeadImportance) -> str:
    return head_title(head_name(head.site, head.head))


def _worth_figure(
    measured: HeadImportances,
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
    figure = traces.cells(
        go.Figure(),
        np.array(cells),
        y=[head_title(layer_name(site)) for site in sites],
        x=list(range(1, len(rows[0]) + 1)),
        written=[[f"{h.head + 1} ×" if (h.site, h.head) in off else str(h.head + 1) for h in row] for row in rows],
        customdata=[
            [[_title(h), localised(_with_interval(h, measure), words.language), h.site, h.head] for h in row]
            for row in rows
        ],
        limit=None if measure == "gradient" else limit,
        most=limit,
        gap=2,
        hover="%{customdata[0]}: %{customdata[1]}",
        bar=labels[measure],
    )
    title = labels["by-worth"] if ordered else labels["head"]
    return lay_out(figure, title, labels["layer"], height=90 + 36 * len(sites), yaxis={"autorange": "reversed"})


def _with_interval(head: HeadImportance, measure: str) -> str:
    """Return the measured value with its interval."""
    if measure == "gradient":
        return f"{head.gradient:.3f}"
    value, low, high = getattr(head, measure)
    return f"{value:+.2f} ({low:+.2f} … {high:+.2f})"
