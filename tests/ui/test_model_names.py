"""Classes of the shipped models in every language."""

from __future__ import annotations

import pytest

from ui.text.words import ENGLISH, languages, load_words
from viz_core.images.drawn import GARMENTS, SCENES
from viz_core.pretrained import available, load_classifier


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
