"""What the vision chapter says of its pictures, held against what was drawn."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.reading import drawn, finding, number, one_line, stands
from viz_core.images.drawn import GARMENTS, SCENES, drawn_picture
from viz_core.pretrained import ImageClassifier, load_classifier

OpenPage = Callable[..., AppTest]


@pytest.mark.parametrize("model", ["Garments", "Animals, vehicles"])
@pytest.mark.parametrize("token", [1, 9, 30])
def test_of_what_a_patch_has_of_itself(open_page: OpenPage, model: str, token: int) -> None:
    """A patch was said to keep most of itself; in the shipped models' rollout it is a few hundredths."""
    app = open_page("vision-transformer", **{"vt-section": "Patch lab", "vt-model": model, "pin": f"q{token}"})
    stands(app)
    assert "The address asks for" not in one_line(app)
    keeps = finding(app, "this patch has more of itself", "has no more of itself")
    own, other = (number(app, words) for words in (("rollout:", "and") if keeps else ("some other:", "of itself,")))
    rollout = [trace["z"] for trace in drawn(app, "lab") if trace["type"] == "heatmap"][1].ravel().astype(float)
    assert own == pytest.approx(rollout[token - 1], abs=6e-4)
    assert other == pytest.approx(np.delete(rollout, token - 1).max(), abs=6e-4)
    assert keeps == (rollout[token - 1] > np.delete(rollout, token - 1).max())
    assert own < 0.5
    if token == 1:
        caution(app, load_classifier("vit-fashion-mnist" if model == "Garments" else "vit-cifar10", "cpu"))


def caution(app: AppTest, model: ImageClassifier) -> None:
    """A percentage stood alone: it comes with how often it is right, and whether such pictures were met."""
    first, *_ = GARMENTS if model.card.name == "vit-fashion-mnist" else SCENES
    found = model.classify(drawn_picture(first))
    assert found.distance is not None
    assert ("**Unlike what it was trained on**" in one_line(app)) == found.distance.strange
    assert f"{found.distance.value:.1f} from the mean of" in one_line(app)
    confidence = found.probabilities[found.label]
    bins = model.card.training["calibration"]["bins"]
    own = next(each for each in bins if each["start"] <= confidence <= each["stop"])
    assert f"it is right in {own['accuracy']:.1%} of {own['pictures']:,} held-out pictures" in one_line(app)
