"""A shipped model's names and card in the visitor's language."""

from __future__ import annotations

import re

import pytest
from streamlit.testing.v1 import AppTest

from ui.text.numbers import localised
from ui.text.words import ENGLISH, languages, load_words
from viz_core.images.samples import GARMENTS, SCENES
from viz_core.pretrained import available, load_classifier

CARDS = {card.name: card for card in available()}


def _text(name: str, language: str) -> str:
    def draw(name: str) -> None:
        import streamlit as st

        from ui.text.model_card import model_card_text
        from viz_core.pretrained import available

        st.markdown(model_card_text(next(card for card in available() if card.name == name)))

    app = AppTest.from_function(draw, args=(name,))
    app.query_params["lang"] = language
    app.run()
    assert not app.exception
    return str(app.markdown[0].value)


@pytest.mark.parametrize("language", languages())
@pytest.mark.parametrize("name", CARDS)
def test_a_card_has_the_scores_and_counts_of_its_files(name: str, language: str) -> None:
    card, text = CARDS[name], _text(name, language)
    digits = 1 if card.task == "translation" else 2
    numbers = [f"{card.config['parameters']:,}", *(f"{score:.{digits}f}" for score in card.scores.values())]
    numbers += [f"{each['bleu']:.1f}" for each in card.training.get("bleu_by_length", ())]
    numbers += [f"{row[i] / sum(row):.1%}" for i, row in enumerate(card.training.get("confusion", ()))]
    assert not [number for number in numbers if localised(number, language) not in text]
    assert not re.search(r"\{\w+\}", text)


@pytest.mark.parametrize("language", languages())
def test_each_class_and_each_sample_has_a_name(language: str) -> None:
    models = [load_classifier(card.name, "cpu") for card in available(task="classification")]
    labels = {label for model in models for label in model.labels}
    named = load_words("common", language).group("class")
    assert named.keys() == labels | {*GARMENTS, *SCENES}
    if language == ENGLISH:
        assert {label: named[label] for label in labels} == {label: label for label in labels}
    else:
        assert not {label for label in labels if named[label] == label}
