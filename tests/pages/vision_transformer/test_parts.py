"""The vision chapter: its figures by hand, its sentences against its pictures, and heads switched off."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from PIL import Image
from streamlit.testing.v1 import AppTest

from pages.vision_transformer.figures import filters_image, shuffled_picture, similarity_image
from tests.pages.reading import drawn, finding, one_line, stands, texts
from tests.tiny_models import GREY
from ui.compute.heads import head_importance
from viz_core.pretrained import load_classifier
from viz_core.pretrained.samples import GARMENTS, drawn_picture
from viz_core.trace import intervene, off

OpenPage = Callable[..., AppTest]


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


@pytest.mark.usefixtures("small_vision_models")
def test_probabilities_before_and_after_and_the_switches(open_page: OpenPage, vision_checkpoints: str) -> None:
    model = load_classifier(GREY, "cpu", vision_checkpoints)  # type: ignore[arg-type]
    parameters = {"vt-model": GREY, "vt-without": ["encoder-1", "encoder-3.2"], "head": "encoder-self.2.0"}
    app = open_page("vision-transformer", **parameters, **{"vt-section": "What heads are worth"})
    stands(app)
    plain = model.classify(drawn_picture(GARMENTS[0]))
    with intervene({"encoder.0.self": off(0, 1), "encoder.2.self": off(1)}):
        without = model.classify(drawn_picture(GARMENTS[0]))
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
