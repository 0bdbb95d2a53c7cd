"""Heads switched off: next words and perplexity of the same text, or how far the output moves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import streamlit as st

from pages.model_lab.heads_off_figures import beside_figure, distances_figure
from pages.model_lab.inputs import run
from pages.model_lab.models import hub_maps
from pages.model_lab.next_words import before_writing
from serving.requests.hub import HubRequest
from ui.blocks.heads_off import head_switches, name_heads
from ui.blocks.translation import choose_token
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate
from ui.text.head_names import HeadNames
from ui.text.markdown import escape
from ui.text.model_card import class_label
from ui.text.words import current_language
from viz_core.hub import HubCard, HubRun
from viz_core.lab.heads_off import Without, switchable, without_heads
from viz_core.maps.contribution_shares import ContributionKind
from viz_core.trace import HeadsOff
from viz_core.view.map_group import MapGroup


def choose_heads_off(chapter: Chapter, card: HubCard, request: HubRequest) -> tuple[HeadNames, tuple[str, ...]]:
    """Switches for heads: those of this model, and those that are off."""
    heads = HeadNames(evaluate(request, switchable))
    if not heads.sites:
        st.caption(chapter.words("no-switches" if "switches" in card.kind_class.features else "no-switches-of-two"))
        return heads, ()
    return heads, head_switches(chapter, heads)


def show_without(
    chapter: Chapter, card: HubCard, request: HubRequest, result: HubRun, off: tuple[str, ...], heads: HeadsOff
) -> None:
    """What changes in the same pass over the same tokens, and what a model that writes would write instead."""
    with chapter.card("off"):
        chapter.text("off", heads=name_heads(off))
        if card.head == "words":
            _words(chapter, request, result, heads)
            if request.new_tokens and not request.target:
                other = run(chapter, replace(request, off=heads))
                with st.container(key="off-written"):
                    st.markdown(chapter.words("off-written", text=escape(other.text.strip() if other else "")))
        else:
            found = evaluate(request, without_heads, heads)
            if found.distances is None:
                _beside(chapter, found, "classes")
            else:
                _distances(chapter, result, found.distances)


def maps_without(
    chapter: Chapter, request: HubRequest, off: tuple[str, ...], heads: HeadsOff, contribution_kind: ContributionKind
) -> tuple[tuple[MapGroup, ...], tuple[str, str]]:
    """The maps of a run without these heads, to compare with, and what both runs are."""
    maps = hub_maps(replace(request, off=heads), current_language(), contribution_kind)
    return maps, (chapter.common("with-all"), f"− {name_heads(off)}")


def _words(chapter: Chapter, request: HubRequest, result: HubRun, heads: HeadsOff) -> None:
    read = result.decoder_tokens or result.tokens
    count = len(result.output)
    first, place = len(read) - count, before_writing(result)
    if count > 1:
        place = choose_token(chapter, "off-place", [token.label for token in read], first, first + place) - first
    found = evaluate(request, without_heads, heads, place)
    _beside(chapter, found, "words", token=escape(read[first + place].label))
    if found.perplexity is None:
        return
    before, after = found.perplexity
    chapter.text("perplexity", before=f"{before:,.2f}", after=f"{after:,.2f}", count=f"{found.counted:,}")


def _beside(chapter: Chapter, found: Without, kind: str, token: str = "") -> None:
    """Probabilities with all heads and without, side by side."""
    labels, changes = chapter.words.group("figure"), found.changes
    if kind == "classes":
        changes = tuple(replace(change, label=class_label(change.label)) for change in changes)
    most = max(changes, key=lambda change: abs(change.after - change.before))
    chapter.figure(
        f"off-{kind}",
        beside_figure(changes, labels["next" if kind == "words" else "class"], labels),
        word=escape(most.label),
        before=f"{most.before:.3f}",
        after=f"{most.after:.3f}",
        token=token,
    )


def _distances(chapter: Chapter, result: HubRun, distances: np.ndarray) -> None:
    """Cosine distance of each token's last state."""
    names = [token.label for token in result.tokens]
    most = int(distances.argmax())
    chapter.figure(
        "off-distance",
        distances_figure(names, distances, chapter.words.group("figure")),
        mean=f"{float(distances.mean()):.3f}",
        token=escape(names[most]),
        most=f"{float(distances[most]):.3f}",
    )
