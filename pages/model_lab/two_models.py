"""Two models on the same text: heads side by side, differences, and the most changed heads."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st

from pages.model_lab.models import hub_maps, hub_run
from serving.requests.hub import HubRequest
from serving.requests.lab_queries import shows_contributions
from serving.requests.model_comparison import KindCompared, compare_heads
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate
from ui.compute.slots import compute_cached
from ui.text.head_names import head_link
from ui.text.markdown import escape
from ui.text.model_card import title_of
from ui.text.numbers import localised
from viz_core.maps.contribution_shares import ContributionKind
from viz_core.view.map_group import MapGroup

_MOST = 12


def maps_of_other(
    request: HubRequest,
    other: HubRequest,
    groups: tuple[MapGroup, ...],
    language: str,
    contribution_kind: ContributionKind,
) -> tuple[tuple[MapGroup, ...], tuple[str, ...]]:
    """The other input's maps, and the kinds that cannot be subtracted from the first's; none where the kinds differ."""
    if request.model == other.model:
        return hub_maps(other, language, contribution_kind), ()
    second = hub_maps(other, language, contribution_kind if evaluate(other, shows_contributions) else "")
    if len(second) == len(groups) == 1 and second[0].id != groups[0].id:  # one is causal, the other is not
        return (replace(second[0], id=groups[0].id),), (groups[0].id,)
    if [group.id for group in second] != [group.id for group in groups]:
        return (), ()
    return second, tuple(kind.id for kind in _compared(request, other) if kind.apart == "tokens")


def changed_heads(chapter: Chapter, request: HubRequest, other: HubRequest, groups: tuple[MapGroup, ...]) -> None:
    """List the heads by change in the other model, the most changed first; each opens by a click."""
    labels = {group.id: group.label for group in groups}
    found = _compared(request, other)
    with chapter.card("two-models"):
        chapter.text(
            "two-models" if found else "two-directions",
            first=escape(title_of(request.model.name)),
            second=escape(title_of(other.model.name)),
        )
        for kind in found:
            if kind.apart:
                st.caption(chapter.words(f"two-{kind.apart}", kind=labels[kind.id]))
            else:
                _listed(chapter, kind, labels[kind.id])


def _listed(chapter: Chapter, kind: KindCompared, label: str) -> None:
    still = sum(one.change == 0 for one in kind.heads)
    chapter.text("two-changed", kind=label, heads=len(kind.heads), still=still)
    changes = [localised(f"{one.change:.3f}", chapter.words.language) for one in kind.heads[:_MOST]]
    heads = [head_link(kind.id, one.layer, one.head) for one in kind.heads]
    st.markdown("\n".join(f"1. {head} · **{change}**" for head, change in zip(heads, changes, strict=False)))


def _compared(request: HubRequest, other: HubRequest) -> tuple[KindCompared, ...]:
    return compute_cached(
        lambda: compare_heads(hub_run(request), hub_run(other)), compare_heads, (request, other), "measuring"
    )
