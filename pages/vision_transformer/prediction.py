"""The prediction and its reliability, without some heads too, and how the model was trained."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import streamlit as st

from pages.vision_transformer import figures as training_figures
from pages.vision_transformer.figures import probabilities_figure, shuffled_picture
from pages.vision_transformer.inputs import ROUNDING, PictureInputs, enlarged, over_grid, shipped_card, strongest
from serving.requests.models import ShippedClassifier
from ui.blocks.figures import bars_figure
from ui.blocks.heads_off import name_heads, score_examples
from ui.blocks.over_picture import over_picture_image, signed_image
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate, evaluate_model
from ui.compute.pictures import classification, picture_maps, picture_preview
from ui.text.markdown import escape
from ui.text.model_card import class_label, trained_for
from ui.text.translations import device_name
from ui.text.words import current_language
from ui.widgets.chart import named_parts
from viz_core.lab.pictures import count_samples, label_relevance, right_statistics
from viz_core.lessons.vision_transformer import patches_shuffled, random_order
from viz_core.maps.contributions import ContributionKind
from viz_core.pretrained import Classification
from viz_core.pretrained.bleu import percentage_right
from viz_core.trace import HeadsOff
from viz_core.view.map_group import MapGroup

_SHOWN_LABELS = 5
_PICTURE = 124
_RELEVANCE = 156  # pixels, with its caption
_THUMB = 156  # pixels; three side by side, two on a phone


def prediction(chapter: Chapter, picture_inputs: PictureInputs, broken: str) -> None:
    """Draw the picture and its prediction; broken, beside it, with its patches shuffled or without positions."""
    found = picture_inputs.found
    if not found.probabilities:
        st.image(enlarged(found.prepared.seen), width=_PICTURE, alt=chapter.words("alt.picture"))
        chapter.text("no-labels", model=escape(picture_inputs.facts.title))
        return
    chapter.side_by_side(broken, lambda setting: _prediction(chapter, picture_inputs, setting, bool(broken)))
    _warn_of_unlike_picture(chapter, picture_inputs)


def _prediction(chapter: Chapter, picture_inputs: PictureInputs, setting: str, compared: bool) -> None:
    found, names = picture_inputs.found, chapter.words.group("figure")
    intact, shuffled = found.prepared.seen, setting == "shuffled"
    order = random_order(math.prod(found.grid), 0)
    picture = shuffled_picture(intact, picture_inputs.facts.patch_size, order) if shuffled else intact
    probabilities, change = found.probabilities, 0.0
    if setting:
        test = evaluate(picture_inputs.request, patches_shuffled, 0)
        values = test.positions_shuffled if shuffled else test.no_positions
        change = float((test.positions - values).abs().max())
        probabilities = dict(zip(picture_inputs.facts.labels, values.tolist(), strict=True))
    label = max(probabilities, key=probabilities.__getitem__)
    percent = f"{100 * probabilities[label]:.1f}"
    has_relevance = not compared and isinstance(picture_inputs.request.model, ShippedClassifier)
    left, middle, right = st.columns([9, 12, 8] if has_relevance else [2, 5, 5], vertical_alignment="center")
    with left, st.container(horizontal=True, gap="small"):
        st.image(enlarged(picture), width=_PICTURE, alt=chapter.words("alt.picture"))
        if has_relevance:
            chapter.lazy("relevance", lambda: _relevance(chapter, picture_inputs), _RELEVANCE)
    with middle:
        st.markdown(f"## {chapter.words('answer', label=escape(class_label(label)), percent=percent)}")
        with chapter.claim_row("main"):
            chapter.claim("in-order", change, ROUNDING)
    with right:
        top = sorted(probabilities, key=lambda name: -probabilities[name])[:_SHOWN_LABELS]
        classes = [class_label(name) for name in top]
        figure = bars_figure(classes, [probabilities[name] for name in top], classes[0], names["class"], names)
        figure.update_layout(height=124, meta=named_parts(whole="label"))
        figure.update_xaxes(visible=False)  # each bar has its number
        probability = f"{probabilities[label]:.2f}"
        chapter.figure("labels", figure, bar=False, label=classes[0], probability=probability)


def _relevance(chapter: Chapter, picture_inputs: PictureInputs) -> None:
    """Draw what decides the label: the class token's relevance, over the picture."""
    found, words = picture_inputs.found, chapter.words
    values = over_grid(found, evaluate(picture_inputs.request, label_relevance, found.label)[0])
    title = words("relevance")
    alt = words("alt.lab", who=words("class-token"), most={title: strongest(chapter, values)})
    st.image(over_picture_image(found.prepared.seen, values), width=_PICTURE, caption=title, alt=alt)


def preprocessing(chapter: Chapter, picture_inputs: PictureInputs) -> None:
    """Draw the original picture, the preprocessed one, and its pixel values."""
    prepared, words = picture_inputs.found.prepared, chapter.words
    small, (width, height) = picture_preview(picture_inputs.request.picture)
    steps = [words(f"step.{step}") for step in prepared.steps] or words("step.none")
    pixels = prepared.pixels[0]
    low, high = float(pixels.min()), float(pixels.max())
    numbers = signed_image(pixels.mean(dim=0).numpy(), max(abs(low), abs(high), 1e-6))
    seen_size = f"{prepared.seen.width} × {prepared.seen.height}"
    with st.container(horizontal=True, gap="small"):
        for picture, caption in (
            (small, words("brought", width=f"{width:,}", height=f"{height:,}")),
            (enlarged(prepared.seen), words("seen", size=seen_size, steps=steps)),
            (numbers, words("numbers", low=f"{low:.2f}", high=f"{high:.2f}")),
        ):
            st.image(picture, width=_THUMB, caption=caption, alt=caption)


def _warn_of_unlike_picture(chapter: Chapter, picture_inputs: PictureInputs) -> None:
    distance, values = picture_inputs.found.distance, _familiarity(picture_inputs)
    if values and distance is not None and distance.is_unfamiliar:
        st.warning(chapter.words("strange", **values), icon=":material/help:")


def reliability(chapter: Chapter, picture_inputs: PictureInputs) -> None:
    """Show how often predictions of this confidence are correct, and how typical the picture is."""
    found, card = picture_inputs.found, shipped_card(picture_inputs)
    values = _familiarity(picture_inputs)
    if not values or card is None or found.distance is None:
        st.caption(chapter.words("unmeasured"))
        return
    if found.distance.is_unfamiliar:  # then what was measured on typical pictures does not count
        return
    if entry := bin_of(card.training["calibration"]["bins"], found.probabilities[found.label]):
        shares = {"start": f"{entry['start']:.0%}", "stop": f"{entry['stop']:.0%}", "right": f"{entry['accuracy']:.1%}"}
        st.caption(chapter.words("reliable", pictures=f"{entry['pictures']:,}", **shares))
    st.caption(chapter.words("known", **values))


def _familiarity(picture_inputs: PictureInputs) -> dict[str, str]:
    """Return the picture's distance from the training pictures as words take it; empty where it was not measured."""
    found, card = picture_inputs.found, shipped_card(picture_inputs)
    record = card.training if card else {}
    if "calibration" not in record or "familiarity" not in record or found.distance is None:
        return {}
    return {
        "distance": f"{found.distance.value:.1f}",
        "threshold": f"{found.distance.threshold:.1f}",
        "known": f"{record['familiarity']['known']:.0%}",
    }


def bin_of(bins: Sequence[Mapping[str, float]], confidence: float) -> Mapping[str, float] | None:
    """Return the calibration bin of a confidence; None where no test picture was in it."""
    inside = (each for each in bins if each["start"] <= confidence < each["stop"] or confidence == each["stop"] == 1)
    return next(inside, None)


_AT_ONCE = 100  # pictures between two steps of the progress
_ABLATED_SHOWN_LABELS = 6


def show_without(chapter: Chapter, picture_inputs: PictureInputs, off: tuple[str, ...], heads: HeadsOff) -> None:
    """Show the picture's probabilities with and without the heads, and the accuracy on demand."""
    with chapter.card("off", has_picture=False):
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
    shown = sorted(before, key=lambda label: -max(before[label], after[label]))[:_ABLATED_SHOWN_LABELS]
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


def training(chapter: Chapter, picture_inputs: PictureInputs) -> None:
    """Curves, scores and the card, all as the training script wrote them."""
    card = shipped_card(picture_inputs)
    if card is None:
        chapter.text("not-trained-here", model=escape(picture_inputs.facts.title))
        return
    record, names = card.training, chapter.words.group("figure")
    curve, right = record["curve"], card.scores["accuracy"]
    chapter.text(
        "training",
        model=card.name,
        time=trained_for(record["seconds"]),
        device=device_name(record["device"]),
        accuracy=f"{right:.2f}",
        count=f"{sum(map(sum, record['confusion'])):,}",
    )
    left, other = st.columns(2)
    with left:
        last = curve[-1]
        chapter.figure(
            "curve",
            partial(training_figures.curve_figure, curve, names),
            epochs=f"{last['epoch']:.0f}",
            validation=f"{last['validation_accuracy']:.1f}",
        )
    with other:
        counts, classes = np.array(record["confusion"]), [class_label(label) for label in picture_inputs.facts.labels]
        mistakes = counts - np.diag(np.diag(counts))
        is_, predicted = divmod(int(mistakes.argmax()), len(counts))
        chapter.figure(
            "confusion",
            partial(training_figures.confusion_figure, counts, classes, names),
            accuracy=f"{right:.2f}",
            real=classes[is_],
            said=classes[predicted],
            times=int(mistakes.max()),
        )
    if calibration := record.get("calibration"):
        bins = calibration["bins"]
        chapter.figure(
            "calibration",
            training_figures.calibration_figure(bins, names),
            pictures=f"{calibration['pictures']:,}",
            error=f"{100 * calibration['error']:.1f}",
            summary={f"{each['confidence']:.0%}": f"{each['accuracy']:.0%}" for each in bins},
        )
        sure = sum(each["pictures"] * (each["confidence"] - each["accuracy"]) for each in bins) > 0
        chapter.finding("too-sure", sure)
    chapter.model_card("card", chapter.words("card"), card)
