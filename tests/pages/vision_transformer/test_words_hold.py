"""What the vision chapter says of its pictures, held against what was drawn."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.reading import figures, one_line, stands
from viz_core.images.drawn import GARMENTS, drawn_picture
from viz_core.pretrained import ImageClassifier, load_classifier

OpenPage = Callable[..., AppTest]


@pytest.mark.parametrize("model", ["Garments", "Animals, vehicles"])
def test_of_the_picture_that_the_page_opens_with(open_page: OpenPage, model: str) -> None:
    app = open_page("vision-transformer", **{"vt-model": model})
    stands(app)
    caution(app, load_classifier("vit-fashion-mnist" if model == "Garments" else "vit-cifar10", "cpu"))


@pytest.mark.parametrize("model", ["Garments", "Animals, vehicles"])
def test_of_the_picture_that_the_shuffle_test_opens_with(open_page: OpenPage, model: str) -> None:
    """Shuffled, an airplane stayed one with 91%, as if positions did not matter."""
    app = open_page("vision-transformer", **{"vt-section": "Shuffle test", "vt-model": model})
    alt = figures(app, "permutation")[0]["about"]["alt"]
    found = re.search("Prediction with positions: (.+), then (.+); without: (.+) both times", alt)
    assert found is not None
    assert found[1] != found[2]


def caution(app: AppTest, model: ImageClassifier) -> None:
    """A percentage stood alone: it comes with how often it is right, and whether such pictures were met."""
    first = GARMENTS[0] if model.card.name == "vit-fashion-mnist" else "truck"
    found = model.classify(drawn_picture(first))
    assert found.distance is not None
    assert ("**Unlike the training pictures.**" in one_line(app)) == found.distance.is_unfamiliar
    assert f"{found.distance.value:.1f} from the training mean" in one_line(app)
    confidence = found.probabilities[found.label]
    bins = model.card.training["calibration"]["bins"]
    own = next(each for each in bins if each["start"] <= confidence <= each["stop"])
    reliable = f"{own['accuracy']:.1%} of {own['pictures']:,} held-out predictions are correct" in one_line(app)
    assert reliable != found.distance.is_unfamiliar, "no accuracy for pictures on which it was never measured"


def test_of_a_picture_unlike_the_training_pictures(open_page: OpenPage) -> None:
    """No accuracy is given beside the warning: it was measured on other pictures."""
    app = open_page("vision-transformer", **{"open-all": "false", "vt-sample": "sneaker"})
    assert "**Unlike the training pictures.**" in one_line(app)
    assert "held-out predictions are correct" not in one_line(app)


@pytest.mark.parametrize("model", ["Garments", "Animals, vehicles"])
def test_of_the_first_sample_whose_answer_depends_on_positions(open_page: OpenPage, model: str) -> None:
    """Shuffling the patches of the airplane changed almost nothing, so the default did not show it."""
    shuffled = {"vt-model": model, "vt-break": "shuffled", "open-all": "false"}
    app = open_page("vision-transformer", **shuffled)
    intact, broken = (element.value for element in app.markdown if element.value.startswith("## Prediction: "))
    assert intact.split(",")[0] != broken.split(",")[0]
    assert "of the boot" not in one_line(app)
