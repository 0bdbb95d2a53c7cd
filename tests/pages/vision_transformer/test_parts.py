"""The vision chapter: its figures by hand, its sentences against its pictures, and heads switched off."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest
import torch
from PIL import Image
from streamlit.testing.v1 import AppTest

from pages.vision_transformer.figures import filters_image, grid_figure, shuffled_picture, similarity_image
from pages.vision_transformer.parts import resting_place
from tests.pages.reading import drawn, figures, finding, number, one_line, stands, texts
from tests.tiny_models import GREY
from ui.compute.heads import head_importance
from viz_core.images.drawn import GARMENTS, SCENES, drawn_picture
from viz_core.pretrained import ImageClassifier, load_classifier
from viz_core.trace import intervene, off

LABELS = {name: name for name in ("row", "column")}
OpenPage = Callable[..., AppTest]


def test_every_patch_of_the_grid_can_be_clicked() -> None:
    figure = grid_figure(Image.new("L", (12, 8)), (2, 3), (1, 2), LABELS)
    points = list(zip(figure.data[0].y.tolist(), figure.data[0].x.tolist(), strict=True))
    assert points == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]


def test_a_shuffled_picture_by_hand() -> None:
    pixels = np.array([[10, 20], [30, 40]], dtype=np.uint8)
    shuffled = shuffled_picture(Image.fromarray(pixels), (1, 1), torch.tensor([2, 0, 3, 1]))
    assert np.asarray(shuffled)[..., 0].tolist() == [[30, 10], [40, 20]]


def test_filters_and_likeness_as_pictures_by_hand() -> None:
    """Red is positive, blue negative, and every tile stands at its own place."""
    filters = torch.zeros(2, 1, 1, 2)
    filters[0, 0, 0] = torch.tensor([2.0, -2.0])
    filters[1, 0, 0] = torch.tensor([-1.0, 0.0])
    sheet = np.asarray(filters_image(filters, columns=2)).astype(int)
    large = 24  # 48 pixels for a filter's longer side of 2
    left, right, second = sheet[2, 2], sheet[2, large + 2], sheet[2, 2 * large + 4 + 2]
    assert left[0] > left[2]
    assert right[2] > right[0]
    assert second[2] > second[0]
    assert sheet[2, 2 * large + 1, 3] == 0, "between two filters there is nothing"
    similarity = torch.eye(4).reshape(2, 2, 2, 2)
    tiles = np.asarray(similarity_image(similarity, side=60)).astype(int)
    cell = 60 // 6
    assert tiles[1, 1, 0] > tiles[1, 1, 2], "the first tile is red at its own place, top left"
    corner = tiles[2 * cell + cell + cell + 1, 2 * cell + cell + cell + 1]
    assert corner[0] > corner[2], "and the last one bottom right"


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


@pytest.mark.usefixtures("small_vision_models")
def test_probabilities_before_and_after_and_the_switches(open_page: OpenPage, vision_checkpoints: str) -> None:
    model = load_classifier(GREY, "cpu", vision_checkpoints)  # type: ignore[arg-type]
    parameters = {"vt-model": GREY, "vt-without": ["encoder-1", "encoder-3.2"], "head": "encoder-self.2.0"}
    app = open_page("vision-transformer", **parameters, **{"vt-section": "What heads are worth"})
    stands(app)
    plain = model.classify(drawn_picture("ankle-boot"))
    with intervene({"encoder.0.self": off(0, 1), "encoder.2.self": off(1)}):
        without = model.classify(drawn_picture("ankle-boot"))
    before, after = drawn(app, "off")
    shown = [label.replace("&lt;", "<").replace("&gt;", ">") for label in before["x"]]
    np.testing.assert_allclose(before["y"], [plain.probabilities[label] for label in shown], atol=1e-6)
    np.testing.assert_allclose(after["y"], [without.probabilities[label] for label in shown], atol=1e-6)
    assert not np.allclose(before["y"], after["y"], atol=1e-3)
    assert finding(app, "The prediction is still", "Without these heads the prediction is") == (
        plain.label == without.label
    )
    assert f"Not measured for **{GREY}**" in texts(app)
    assert "1 pictures drawn for this project" in one_line(app)
    app.button(key="vt-do-head-off").click().run()
    assert app.multiselect(key="vt-without").value == ["encoder-1", "encoder-3"]
    app.button(key="vt-do-all-on").click().run()
    assert app.multiselect(key="vt-without").value == []
    assert not drawn_names(app)


def drawn_names(app: AppTest) -> bool:
    return "with all heads**: " in one_line(app)


def test_accuracy_over_what_ships_or_was_drawn_and_which(open_page: OpenPage) -> None:
    parameters = {"vt-model": "Animals, vehicles", "vt-without": ["encoder-1"]}
    app = open_page("vision-transformer", **parameters)
    assert "pictures drawn for this project" in one_line(app)
    app.button(key="vt-held-out-go").click().run()
    model = load_classifier("vit-cifar10", "cpu")
    with intervene({"encoder.0.self": off(*range(model.card.config["model"]["num_heads"]))}):
        right = [model.classify(drawn_picture(name)).label == name for name in SCENES]
    base = [model.classify(drawn_picture(name)).label == name for name in SCENES]
    assert number(app, f"Accuracy on {len(SCENES)} pictures: **") == pytest.approx(100 * np.mean(base), abs=0.05)
    assert number(app, "with all heads, **") == pytest.approx(100 * np.mean(right), abs=0.05)


def test_what_the_exercise_says_of_layers_is_so() -> None:
    measured = head_importance("vit-fashion-mnist")
    assert measured is not None
    costs = {(head.site, head.head): -head.without.value for head in measured.heads if head.without is not None}
    config = load_classifier("vit-fashion-mnist", "cpu").card.config["model"]
    assert len(costs) == config["num_blks"] * config["num_heads"]
    most = sorted(costs, key=lambda head: -costs[head])[:4]
    assert {site for site, _ in most} == {"encoder.0.self"}
    last = max(cost for (site, _), cost in costs.items() if site == "encoder.5.self")
    assert last < costs[most[3]] / 3


def test_the_grid_of_what_heads_are_worth(open_page: OpenPage) -> None:
    measured = head_importance("vit-fashion-mnist")
    assert measured is not None
    app = open_page("vision-transformer", **{"vt-section": "What heads are worth", "vt-without": ["encoder-2.3"]})
    stands(app)
    grid = drawn(app, "worth")[0]
    assert list(grid["y"]) == [f"layer {layer} (encoder)" for layer in range(1, 7)]
    assert grid["text"][1][2] == "3 ×"
    assert grid["z"][0][0] == pytest.approx(measured.heads[0].without[0], abs=1e-5)
    assert f"on {measured.examples:,} test pictures" in one_line(app)


def test_a_patch_that_every_token_rests_on_is_named_and_an_even_map_names_none() -> None:
    weights = torch.full((5, 5), 0.2)
    assert resting_place(weights) is None
    weights[:, 3], weights[:, 0] = 0.35, 0.05
    assert resting_place(weights) == (3, pytest.approx(0.35))
    weights[:4, 3] = 0.2  # one token alone asks for it
    assert resting_place(weights) is None
