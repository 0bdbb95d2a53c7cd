"""How a shipped model was trained, and how well it does."""

from __future__ import annotations

from functools import partial

import numpy as np
import streamlit as st

from pages.vision_transformer import training_figures
from pages.vision_transformer.inputs import PictureInputs, shipped_card
from ui.chapter.chapter import Chapter
from ui.text.markdown import escape
from ui.text.model_card import class_label, trained_for
from ui.text.terms import device_name


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
