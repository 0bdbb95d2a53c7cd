"""Heads switched off: the prediction without them, and the accuracy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pages.vision_transformer.inputs import PictureInputs
from pages.vision_transformer.patch_figures import probabilities_figure
from serving.models.model_spec import ShippedClassifier
from serving.requests.picture_samples import count_samples, right_statistics
from ui.blocks.heads_off import name_heads, score_examples
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate_model
from ui.compute.pictures import classification, picture_maps
from ui.text.markdown import escape
from ui.text.model_card import class_label
from ui.text.words import current_language
from viz_core.maps.contribution_shares import ContributionKind
from viz_core.pretrained import Classification
from viz_core.pretrained.bootstrap import percentage_right
from viz_core.trace import HeadsOff
from viz_core.view.map_group import MapGroup

_AT_ONCE = 100  # pictures between two steps of the progress
_SHOWN_LABELS = 6


def show_without(chapter: Chapter, picture_inputs: PictureInputs, off: tuple[str, ...], heads: HeadsOff) -> None:
    """Show the picture's probabilities with and without the heads, and the accuracy on demand."""
    with chapter.card("off"):
        if not picture_inputs.found.probabilities:
            chapter.text("off-no-labels", model=escape(picture_inputs.facts.title))
            return
        _both_answers(chapter, picture_inputs.found, classification(replace(picture_inputs.request, off=heads)), off)
        _over_samples(chapter, picture_inputs, heads)


def maps_without(
    chapter: Chapter,
    picture_inputs: PictureInputs,
    off: tuple[str, ...],
    heads: HeadsOff,
    contribution_kind: ContributionKind,
) -> tuple[tuple[MapGroup, ...], tuple[str, str]]:
    """The maps of the run without these heads, and labels of both runs."""
    maps = picture_maps(replace(picture_inputs.request, off=heads), current_language(), contribution_kind)
    return maps, (chapter.common("with-all"), f"− {name_heads(off)}")


def _both_answers(chapter: Chapter, found: Classification, without: Classification, off: tuple[str, ...]) -> None:
    labels = chapter.words.group("figure")
    before, after = found.probabilities, without.probabilities
    shown = sorted(before, key=lambda label: -max(before[label], after[label]))[:_SHOWN_LABELS]
    rows = {"with-heads": before, "without-heads": after}
    label, answer = class_label(found.label), class_label(without.label)
    chapter.text(
        "off",
        heads=name_heads(off),
        label=escape(label),
        before=f"{before[found.label]:.1%}",
        after=f"{after[found.label]:.1%}",
    )
    chapter.figure(
        "off",
        probabilities_figure(
            {labels[name]: [chances[each] for each in shown] for name, chances in rows.items()},
            [class_label(each) for each in shown],
            labels,
        ),
        label=label,
        before=f"{before[found.label]:.2f}",
        after=f"{after[found.label]:.2f}",
        said=answer,
    )
    chapter.finding("same-answer", found.label == without.label, label=escape(label), said=escape(answer))


def _over_samples(chapter: Chapter, picture_inputs: PictureInputs, heads: HeadsOff) -> None:
    """Score accuracy with and without the heads, on shipped or on drawn pictures."""
    model = picture_inputs.request.model
    kind, count = (
        count_samples(model.name, picture_inputs.facts.labels) if isinstance(model, ShippedClassifier) else ("", 0)
    )
    if not isinstance(model, ShippedClassifier) or not count:
        chapter.text("held-out-none", model=escape(picture_inputs.facts.title))
        return
    chapter.text(f"held-out-{kind}", count=f"{count:,}")

    def statistics(heads: HeadsOff, start: int, stop: int) -> np.ndarray:
        return evaluate_model(model, right_statistics, heads, start, stop)

    score_examples(chapter, model, statistics, percentage_right, heads, count, _AT_ONCE)
