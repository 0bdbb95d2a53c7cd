"""The vision chapter through AppTest, on small untrained models: what a page shows is what the library computes."""

import base64
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from streamlit.testing.v1 import AppTest

from pages.vision_transformer.figures import shuffled_picture
from pages.vision_transformer.inputs import pin_of
from tests.pages.reading import array, claim_names, claims, drawn, figures, one_line, stands, texts
from tests.tiny_models import COLOUR, GREY, LABELS
from tests.viz_core.images.hostile_pictures import BAD, GOOD, encode, quarters
from viz_core.images.open_image import open_picture
from viz_core.maps.rollout import attention_rollout
from viz_core.pretrained import Classification, ImageClassifier, load_classifier
from viz_core.pretrained.samples import GARMENTS, drawn_picture
from viz_core.trace import intervene, off

OpenPage = Callable[..., AppTest]
pytestmark = pytest.mark.usefixtures("small_vision_models")
CHAPTER = "vision-transformer"
LAB, PATCHES = "Patch lab", "Patches"


@pytest.fixture
def model(vision_checkpoints: Path) -> ImageClassifier:
    return load_classifier(GREY, "cpu", vision_checkpoints)


@pytest.fixture
def boot(model: ImageClassifier) -> Classification:
    """What the small model makes of the first sample."""
    return model.classify(drawn_picture(GARMENTS[0]))


def open_at(open_page: OpenPage, section: str = LAB, **parameters: str) -> AppTest:
    """The chapter with one of its sections open, or all of them with `open-all`."""
    names = {"section": section, "model": GREY, **parameters}
    own = {name: value for name, value in names.items() if name in ("pin", "head", "look", "open-all")}
    chosen = {f"vt-{name}": value for name, value in names.items() if name not in own}
    return open_page(CHAPTER, **{"open-all": "false"} | chosen | own)


def bars(app: AppTest, figure: str, name: str | None = None) -> np.ndarray:
    data = figures(app, figure)[0]["data"]
    trace = next(t for t in data if name is None or t["name"].startswith(name))
    return array(trace["y"] if name else trace["x"])


def test_it_opens_with_a_sample_what_the_model_says_and_what_decided_it(
    open_page: OpenPage, model: ImageClassifier, boot: Classification
) -> None:
    app = open_at(open_page, **{"open-all": "true"})
    relevance = model.relevance(boot.prepared, boot.label)[0, 1:]
    (shown,) = (each.alt for image in app.get("image") for each in image.proto.imgs if each.caption == "relevance")
    assert f"row {relevance.argmax() // 4 + 1}, column {relevance.argmax() % 4 + 1} ({relevance.max():.3f})" in shown
    assert f"Prediction: {boot.label}, {100 * boot.probabilities[boot.label]:.1f}%" in texts(app)
    np.testing.assert_allclose(bars(app, "labels"), list(boot.probabilities.values()), atol=1e-6)
    assert "edges trimmed, converted to grey, negated, fitted into the square" in captions(app)
    assert "Sample pictures: drawn for this project (MIT licence)." in texts(app)
    assert all(claim.startswith(":green[") for claim in claims(app))
    assert set(claim_names(app)) >= {"rows", "rollout"}


def captions(app: AppTest) -> str:
    return "\n".join(image.caption for element in app.get("image") for image in element.proto.imgs)


def test_the_patch_lab(open_page: OpenPage, model: ImageClassifier, boot: Classification) -> None:
    app = open_at(open_page, fusion="largest", discard="0.6", label=LABELS[1], head="encoder-self.2.1", pin="q7")
    raw, rolled, relevant = (array(each["z"]) for each in drawn(app, "lab") if each["type"] == "heatmap")
    token, layers = 7, [call.weights()[0] for call in boot.trace]
    np.testing.assert_allclose(raw, layers[2].amax(0)[token, 1:].reshape(4, 4), atol=1e-6)
    np.testing.assert_allclose(rolled, attention_rollout(layers, "max", 0.6)[token, 1:].reshape(4, 4), atol=1e-6)
    relevance = model.relevance(boot.prepared, LABELS[1])[token, 1:].reshape(4, 4)
    np.testing.assert_allclose(relevant, relevance, atol=1e-6)


def test_a_patch_is_a_vector_and_becomes_a_token(
    open_page: OpenPage, model: ImageClassifier, boot: Classification
) -> None:
    app = open_at(open_page, PATCHES, pin="q6", **{"open-all": "true"})  # the patch in row 2, column 2
    pixels = boot.prepared.pixels[0, 0, 4:8, 4:8].flatten()
    np.testing.assert_allclose(bars(app, "vector", "patch"), pixels, atol=1e-6)
    with torch.no_grad():
        token = model.model.patch_embedding(boot.prepared.pixels)[0, 5]
    np.testing.assert_allclose(bars(app, "vector", "token"), token, atol=1e-5)
    assert "4 × 4 = 16 patches" in texts(app)
    assert set(claim_names(app)) >= {"rows", "convolution"}
    assert all(claim.startswith(":green[") for claim in claims(app))


def test_a_click_on_the_grid_pins_that_patch() -> None:
    """What goes into the address; the click itself is tested in a browser."""
    assert pin_of({"x": 3, "y": 2}, 1, (4, 4)) == "q7"
    assert pin_of({"x": 1, "y": 1}, 5, (16, 16)) == "q5"


def upload(app: AppTest, content: bytes) -> AppTest:
    app.file_uploader(key="vt-upload").upload("picture.png", content, "image/png").run()
    assert not app.exception, [error.message for error in app.exception]
    return app


@pytest.mark.parametrize(
    ("which", "names"),
    [(COLOUR, ["animated GIF", "palette with transparency"]), (GREY, ["16-bit PNG", "CMYK JPEG", "rotated photo"])],
)
def test_hostile_pictures_that_open_are_classified_upright(
    open_page: OpenPage, vision_checkpoints: Path, which: str, names: Iterable[str]
) -> None:
    app = open_at(open_page, PATCHES, model=which, source="Upload")
    for name in names:
        content, (width, height) = GOOD[name]
        upload(app, content)
        found = load_classifier(which, "cpu", vision_checkpoints).classify(open_picture(content))
        assert f"Prediction: {found.label}, {100 * found.probabilities[found.label]:.1f}%" in texts(app), name
        assert f"The picture, {width:,} × {height:,} pixels" in captions(app), name


def test_hostile_files_are_answered_with_a_sentence_and_the_session_goes_on(open_page: OpenPage) -> None:
    app = open_at(open_page, source="Upload")
    for name, (content, sentence) in [*BAD.items()][::6]:
        upload(app, content)
        assert sentence in texts(app), name
        assert not claims(app), name
        assert claims(upload(app, encode(quarters(), "PNG"))), f"after {name}"


def test_a_drawing_is_looked_at_and_nonsense_is_not(open_page: OpenPage, model: ImageClassifier) -> None:
    sheet = Image.new("RGB", (280, 280), "white")
    sheet.paste((32, 32, 32), (60, 40, 180, 240))
    app = open_at(open_page, source="Draw")
    assert "Draw a garment" in texts(app)
    for message, attended in (
        ("data:image/png;base64," + base64.b64encode(encode(sheet, "PNG")).decode(), True),
        ("data:image/png;base64,%%%", False),
        ("data:text/html;base64,PGI+", False),
        ({"a": 1}, False),
        ("data:image/png;base64," + base64.b64encode(b"GIF89a").decode(), False),
        ("data:image/png;base64," + "A" * 2**21, False),
    ):
        app.session_state["vt-draw"] = {"drawing": message}
        app.run()
        assert not app.exception
        assert bool(claims(app)) == attended, str(message)[:40]
        if attended:
            found = model.classify(sheet)
            assert f"Prediction: {found.label}" in texts(app)


def test_a_shuffled_picture_by_hand() -> None:
    pixels = np.array([[10, 20], [30, 40]], dtype=np.uint8)
    shuffled = shuffled_picture(Image.fromarray(pixels), (1, 1), torch.tensor([2, 0, 3, 1]))
    assert np.asarray(shuffled)[..., 0].tolist() == [[30, 10], [40, 20]]


def test_probabilities_before_and_after_and_the_switches(
    open_page: OpenPage, model: ImageClassifier, boot: Classification
) -> None:
    parameters = {"vt-model": GREY, "vt-without": ["encoder-1", "encoder-3.2"], "head": "encoder-self.2.0"}
    app = open_page("vision-transformer", **parameters, **{"vt-section": "What heads are worth"})
    stands(app)
    with intervene({"encoder.0.self": off(0, 1), "encoder.2.self": off(1)}):
        without = model.classify(drawn_picture(GARMENTS[0]))
    before, after = drawn(app, "off")
    shown = [label.replace("&lt;", "<").replace("&gt;", ">") for label in before["x"]]
    np.testing.assert_allclose(before["y"], [boot.probabilities[label] for label in shown], atol=1e-6)
    np.testing.assert_allclose(after["y"], [without.probabilities[label] for label in shown], atol=1e-6)
    assert not np.allclose(before["y"], after["y"], atol=1e-3)
    app.button(key="vt-do-head-off").click().run()
    assert app.multiselect(key="vt-without").value == ["encoder-1", "encoder-3"]
    app.button(key="vt-do-all-on").click().run()
    assert app.multiselect(key="vt-without").value == []
    assert "with all heads**: " not in one_line(app)
