"""Comparisons: with heads switched off, with another model, and of two sentences that differ in a word."""

from dataclasses import replace

import numpy as np
import streamlit as st

from pages.model_lab.figures import beside_figure, distances_figure
from pages.model_lab.inputs import run
from pages.model_lab.result import before_writing
from serving.requests.hub import HubModelSpec, HubRequest
from ui.blocks.heads_off import head_switches, name_heads
from ui.blocks.translation import choose_token
from ui.blocks.two_sentences import Experiment, draw_experiment, read_sentences
from ui.chapter.chapter import Chapter
from ui.compute import models
from ui.compute.models import evaluate, evaluate_model, map_groups
from ui.compute.slots import compute_cached
from ui.text.head_names import HeadNames, head_link
from ui.text.markdown import escape
from ui.text.model_card import class_label, title_of
from ui.text.numbers import localised
from ui.text.words import current_language
from viz_core.hub import HubCard, HubRun
from viz_core.lab.heads_off import Without, switchable, without_heads
from viz_core.lab.runs import KindCompared, compare_heads, shows_contributions
from viz_core.lab.two_sentences import circuit, compare, predictions, sweep
from viz_core.maps.contributions import ContributionKind
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
    with chapter.card("off", has_picture=False):
        chapter.text("off", heads=name_heads(off))
        if card.head == "words":
            _words(chapter, request, result, heads)
            if request.inputs.budget and not request.inputs.target:
                other = run(replace(request, off=heads))
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
    maps = map_groups(replace(request, off=heads), "model-lab", current_language(), contribution_kind)
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


_MAX_NAMED = 12


def maps_of_other(
    request: HubRequest,
    other: HubRequest,
    groups: tuple[MapGroup, ...],
    language: str,
    contribution_kind: ContributionKind,
) -> tuple[tuple[MapGroup, ...], tuple[str, ...]]:
    """The other input's maps, and the kinds that cannot be subtracted from the first's; none where the kinds differ."""
    if request.model == other.model:
        return map_groups(other, "model-lab", language, contribution_kind), ()
    shown = contribution_kind if evaluate(other, shows_contributions) else ""
    second = map_groups(other, "model-lab", language, shown)
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
    changes = [localised(f"{one.change:.3f}", chapter.words.language) for one in kind.heads[:_MAX_NAMED]]
    heads = [head_link(kind.id, one.layer, one.head) for one in kind.heads]
    st.markdown("\n".join(f"1. {head} · **{change}**" for head, change in zip(heads, changes, strict=False)))


def _compared(request: HubRequest, other: HubRequest) -> tuple[KindCompared, ...]:
    return compute_cached(
        lambda: compare_heads(models.run(request, "hub_run"), models.run(other, "hub_run")),
        compare_heads,
        (request, other),
        "measuring",
    )


_STARTS = {
    "decoder": ("The girls in the house", "The girl in the house"),
    "encoder-decoder": ("The cat is black.", "The dog is black."),
}


def takes_two_sentences(card: HubCard) -> bool:
    """Whether a model reads a text and predicts the next word."""
    return card.head == "words" and card.kind in _STARTS


def two_sentences(chapter: Chapter, card: HubCard, model: HubModelSpec) -> None:
    """Draw the inputs and, once they can be compared, the sweep."""
    sentences = read_sentences(*_STARTS[card.kind])

    def experiment() -> Experiment:
        return Experiment(
            evaluate_model(model, compare, sentences),
            lambda stack, what: evaluate_model(model, sweep, sentences, stack, what).numpy(),
            lambda *cell: evaluate_model(model, predictions, sentences, *cell),
            lambda count: evaluate_model(model, circuit, sentences, count),
        )

    models.attempted(lambda: draw_experiment(chapter, experiment()))
