"""A shipped model's names and card in the visitor's language."""

from __future__ import annotations

import re

import pytest
from streamlit.testing.v1 import AppTest

from ui.text import terms as device_name
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


@pytest.mark.parametrize("language", [language for language in languages() if language != ENGLISH])
@pytest.mark.parametrize("name", CARDS)
def test_a_translated_card_has_no_english_sentence(name: str, language: str) -> None:
    english, text = load_words("model-card", ENGLISH), _text(name, language)
    sentences = [each for section in english.sections.values() for each in re.findall(r"[^.{}|]{12,}", section)]
    assert len(sentences) > 30
    assert not [each for each in sentences if each.strip() in text]


def test_cards_type_no_number_by_hand() -> None:
    """But for the years of papers, the beam and the format of the weights."""
    for language in languages():
        for name, section in load_words("model-card", language).sections.items():
            plain = re.sub(r"\{\w+\}|\b(?:19|20)\d\d\b|float16|CIFAR-10", "", section)
            assert re.findall(r"\d+", plain) in ([], ["4"]), (language, name)


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


@pytest.mark.parametrize(("language", "cores"), [("en", "CPU, 2 cores"), ("pt-BR", "CPU, 2 núcleos")])
def test_cores_are_counted_in_the_readers_language(monkeypatch: pytest.MonkeyPatch, language: str, cores: str) -> None:
    monkeypatch.setattr(device_name, "load_words", lambda name: load_words(name, language))
    assert [device_name.device_name(each) for each in ("CPU, 2 cores", "NVIDIA H200")] == [cores, "NVIDIA H200"]
