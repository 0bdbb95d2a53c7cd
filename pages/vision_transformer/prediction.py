"""What the model receives, and its prediction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from pages.vision_transformer.inputs import PictureInputs, shipped_card
from pages.vision_transformer.places import enlarged
from ui.chapter.chapter import Chapter
from ui.text.markdown import escape
from viz_core.figures.bars import bars_figure
from viz_core.figures.raster import signed_image
from viz_core.images.open_image import preview

_SHOWN_LABELS = 10
_THUMB = 156  # pixels; three side by side, two on a phone


def input_and_prediction(chapter: Chapter, picture_inputs: PictureInputs) -> None:
    """What the model receives, and its prediction."""
    left, right = st.columns([3, 2], gap="large")
    with left:
        preprocessing(chapter, picture_inputs)
    with right:
        prediction(chapter, picture_inputs)


def preprocessing(chapter: Chapter, picture_inputs: PictureInputs) -> None:
    """Draw the original picture, the preprocessed one, and its pixel values."""
    prepared, words = picture_inputs.found.prepared, chapter.words
    image = picture_inputs.image
    steps = [words(f"step.{step}") for step in prepared.steps] or words("step.none")
    pixels = prepared.pixels[0]
    low, high = float(pixels.min()), float(pixels.max())
    numbers = signed_image(pixels.mean(dim=0).numpy(), max(abs(low), abs(high), 1e-6))
    size, seen_size = f"{image.width:,} × {image.height:,}", f"{prepared.seen.width} × {prepared.seen.height}"
    with st.container(horizontal=True, gap="small"):
        for picture, caption in (
            (preview(image), words("brought", size=size)),
            (enlarged(prepared.seen), words("seen", size=seen_size, steps=steps)),
            (numbers, words("numbers", low=f"{low:.2f}", high=f"{high:.2f}")),
        ):
            st.image(picture, width=_THUMB, caption=caption, alt=caption)


def prediction(chapter: Chapter, picture_inputs: PictureInputs) -> None:
    """The likeliest labels, each with its probability."""
    found, names = picture_inputs.found, chapter.words.group("figure")
    if not found.probabilities:
        chapter.text("no-labels", model=escape(picture_inputs.facts.title))
        return
    percent = f"{100 * found.probabilities[found.label]:.1f}"
    st.markdown(f"## {chapter.words('answer', label=escape(found.label), percent=percent)}")
    caution(chapter, picture_inputs)
    top = list(found.probabilities.items())[:_SHOWN_LABELS]
    chapter.figure(
        "labels",
        bars_figure([n for n, _ in top], [p for _, p in top], found.label, names["class"], names),
        label=found.label,
        probability=f"{found.probabilities[found.label]:.2f}",
    )


def caution(chapter: Chapter, picture_inputs: PictureInputs) -> None:
    """Show the calibration of this percentage, and whether the picture is unlike the test pictures."""
    found, card = picture_inputs.found, shipped_card(picture_inputs)
    record = card.training if card else {}
    if "calibration" not in record or "familiarity" not in record or found.distance is None:
        st.caption(chapter.words("unmeasured"))
        return
    values = {
        "distance": f"{found.distance.value:.1f}",
        "threshold": f"{found.distance.threshold:.1f}",
        "known": f"{record['familiarity']['known']:.0%}",
    }
    if found.distance.strange:
        st.warning(chapter.words("strange", **values), icon=":material/help:")
    if entry := bin_of(record["calibration"]["bins"], found.probabilities[found.label]):
        shares = {"start": f"{entry['start']:.0%}", "stop": f"{entry['stop']:.0%}", "right": f"{entry['accuracy']:.1%}"}
        st.caption(chapter.words("reliable", pictures=f"{entry['pictures']:,}", **shares))
    if not found.distance.strange:
        st.caption(chapter.words("known", **values))


def bin_of(bins: Sequence[Mapping[str, float]], confidence: float) -> Mapping[str, float] | None:
    """Return the calibration bin of a confidence; None where no test picture was in it."""
    inside = (each for each in bins if each["start"] <= confidence < each["stop"] or confidence == each["stop"] == 1)
    return next(inside, None)
