"""What the model receives, and its prediction."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import streamlit as st

from pages.vision_transformer.inputs import PictureInputs, shipped_card
from pages.vision_transformer.map_figures import shuffled_picture
from pages.vision_transformer.places import ROUNDING, enlarged
from ui.blocks.figures import bars_figure
from ui.blocks.over_picture import signed_image
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate
from ui.compute.pictures import picture_preview
from ui.text.markdown import escape
from ui.text.model_card import class_label
from ui.widgets.chart import named_parts
from viz_core.lessons.vision_transformer.patches import patches_shuffled, random_order

_SHOWN_LABELS = 6
_PICTURE = 176
_THUMB = 156  # pixels; three side by side, two on a phone


def prediction(chapter: Chapter, picture_inputs: PictureInputs, broken: str) -> None:
    """Draw the picture and its prediction; broken, beside it, with its patches shuffled or without positions."""
    found = picture_inputs.found
    if not found.probabilities:
        st.image(enlarged(found.prepared.seen), width=_PICTURE, alt=chapter.words("alt.picture"))
        chapter.text("no-labels", model=escape(picture_inputs.facts.title))
        return
    chapter.side_by_side(broken, lambda setting: _prediction(chapter, picture_inputs, setting))
    _warn_of_unlike_picture(chapter, picture_inputs)


def _prediction(chapter: Chapter, picture_inputs: PictureInputs, setting: str) -> None:
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
    st.markdown(f"## {chapter.words('answer', label=escape(class_label(label)), percent=percent)}")
    left, right = st.columns([1, 2], gap="medium")
    with left:
        st.image(enlarged(picture), width=_PICTURE, alt=chapter.words("alt.picture"))
    with right:
        top = sorted(probabilities, key=lambda name: -probabilities[name])[:_SHOWN_LABELS]
        classes = [class_label(name) for name in top]
        figure = bars_figure(classes, [probabilities[name] for name in top], classes[0], names["class"], names)
        figure.update_layout(height=190, meta=named_parts(whole="label"))
        probability = f"{probabilities[label]:.2f}"
        chapter.figure("labels", figure, bar=False, label=classes[0], probability=probability)
    with chapter.claim_row("main"):
        chapter.claim("in-order", change, ROUNDING)


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
