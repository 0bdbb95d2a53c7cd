"""Heads switched off on the vision page: what the model says without them, and over many pictures."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.reading import drawn, finding, number, one_line, stands, texts
from tests.tiny_vit import GREY
from ui.compute.heads import head_importance
from viz_core.images.drawn import SCENES, drawn_picture
from viz_core.pretrained import load_classifier
from viz_core.trace import intervene, off

OpenPage = Callable[..., AppTest]


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
