"""Heads switched off: by link and by button, and the score without them over many examples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

import numpy as np
import streamlit as st

from serving.models.model_spec import ModelSpec
from ui.chapter.chapter import Chapter
from ui.compute.slots import compute_cached
from ui.text.head_names import HeadNames, head_name, head_title
from ui.text.numbers import series
from ui.text.words import current_language
from viz_core.pretrained.bootstrap import paired_bootstrap
from viz_core.trace import HeadsOff
from viz_core.view.map_group import MapGroup
from viz_core.view.state import ViewState

_MAX_NAMES = 6


def head_switches(chapter: Chapter, heads: HeadNames) -> tuple[str, ...]:
    """Draw the list of heads; return the names of those that are off. The URL holds them."""
    return tuple(chapter.controls.multiselect("without", heads.every, [], labels=head_title))


def heads_menu(chapter: Chapter) -> Callable[[], AbstractContextManager[None]]:
    """Draw a popover for what changes the maps of a page; return a function that opens a block in it."""
    return chapter.controls.menu(chapter.common("heads-menu"), ":material/toggle_off:")


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
        st.caption(chapter.common("shared-layers"))
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
