"""Pictures in the model lab, and its vision models in the vision chapter: tiny ViT and DINOv2 in hub layout."""

import base64
import io
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from streamlit.testing.v1 import AppTest

from pages.model_lab.media import over_patches_figure
from tests.pages.reading import alts, claim_names, claims, texts
from tests.viz_core.images.hostile_pictures import encode, quarters
from ui.text.words import load_words
from viz_core.hub import HubRun, HubVision, PatchGrid, load_hub
from viz_core.images.open_image import open_picture
from viz_core.lab.sinks import picture_rows
from viz_core.trace import Trace

PICTURE = encode(quarters(), "PNG")
OpenPage = Callable[..., AppTest]


pytestmark = pytest.mark.usefixtures("offline_lab")


def upload(app: AppTest, key: str, content: bytes) -> AppTest:
    app.file_uploader(key=key).upload("picture.png", content, "image/png").run()
    assert not app.exception, [error.message for error in app.exception]
    return app


@pytest.mark.parametrize("family", ["vit", "dinov2", "registers"])
def test_a_picture_in_the_lab(open_page: OpenPage, folders: Path, family: str) -> None:
    app = upload(open_page("model-lab", **{"ml-model": family}), "ml-picture", PICTURE)
    run = load_hub(folders / family, device="cpu").run(image=open_picture(PICTURE))
    assert f"{len(run.tokens)} tokens" in texts(app)
    assert all(claim.startswith(":green[") for claim in claims(app))
    if run.labels:
        assert run.labels[0].text in alts(app)[0]
    links = [link.proto for link in app.get("page_link")]
    assert any(f"vt-lab={family}" in link.query_string for link in links)
    assert any(f"hs-model=lab&hs-lab={family}" in link.query_string for link in links)


@pytest.mark.parametrize("family", ["dinov2", "registers"])
def test_every_look_of_the_vision_chapter(open_page: OpenPage, family: str) -> None:
    """All its sections are open."""
    app = open_page("vision-transformer", **{"vt-lab": family, "pin": "q7"})
    assert all(claim.startswith(":green[") for claim in claims(app))
    assert claims(app)
    assert not app.error


def test_uploads_reach_a_lab_model(open_page: OpenPage, folders: Path) -> None:
    app = open_page("vision-transformer", **{"vt-lab": "vit", "vt-source": "Upload"})
    upload(app, "vt-upload", PICTURE)
    model = HubVision(load_hub(folders / "vit", device="cpu"))
    found = model.classify_prepared(model.prepare(open_picture(PICTURE)))
    assert f"Prediction: {found.label}" in texts(app)


@pytest.mark.parametrize(
    ("name", "page_text"),
    [("bert", "takes a text, not a picture"), ("../../etc/passwd", "is not on this machine")],
)
def test_what_cannot_be_opened_is_a_sentence(open_page: OpenPage, name: str, page_text: str) -> None:
    app = open_page("vision-transformer", **{"vt-lab": name})
    assert page_text in texts(app)
    assert not claims(app)


def test_a_host_offers_only_its_own(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATLAS_MODELS", "dinov2")
    assert "not among the models" in texts(open_page("vision-transformer", **{"vt-lab": "vit"}))
    assert claims(open_page("vision-transformer", **{"vt-lab": "dinov2"}))


@pytest.mark.parametrize(("chapter", "key"), [("model-lab", "ml-picture"), ("vision-transformer", "vt-upload")])
def test_a_link_asks_for_its_picture_again_by_name(open_page: OpenPage, chapter: str, key: str) -> None:
    """The name goes into the address with the upload; whoever opens that address is told which picture it was."""
    link = {"ml-model": "vit", "vt-source": "Upload"}
    app = upload(open_page(chapter, **link), key, PICTURE)
    assert app.query_params[f"{key}-file"] == "picture.png"
    assert "used the picture" not in texts(app)
    again = open_page(chapter, **link, **{f"{key}-file": "my <b>cat</b>.png"})
    notes = [note.value for note in again.info if "used the picture" in note.value]
    assert [note.split("**")[1] for note in notes] == [r"my \<b\>cat\</b\>\.png"]
    assert "used the picture" not in texts(upload(again, key, PICTURE))
    again.file_uploader(key=key).clear().run()
    assert "used the picture" not in texts(again), "the reader has taken it away"
    assert f"{key}-file" not in again.query_params


@pytest.mark.parametrize("family", ["smolvlm", "paligemma", "qwen2_vl"])
def test_a_picture_and_a_question_in_the_lab(open_page: OpenPage, folders: Path, family: str) -> None:
    app = open_page("model-lab", **{"ml-model": family, "ml-asked": "Where is the cat?", "ml-new": "4"})
    app = upload(app, "ml-picture", PICTURE)
    model = load_hub(folders / family, device="cpu")
    prompt = model.card.prompt.replace("{text}", "Where is the cat?")
    run = model.run(prompt, image=open_picture(PICTURE), max_new_tokens=4)
    page_text = texts(app)
    assert f"{len(run.tokens)} tokens" in page_text
    assert run.prompt.strip() in [code.value for code in app.code]
    assert f"**{sum(grid.places.size for grid in run.patches)}** patches" in page_text
    assert run.frame is not None, "its vision tower is shown too"
    assert load_words("model-lab")("no-tower") not in page_text
    future = "future-written" if family == "paligemma" else "future"  # it reads its prompt in both directions
    assert claim_names(app) == ["rows", future, "score-products"]
    assert len(claims(app)) == len(claim_names(app))
    assert all(claim.startswith(":green[") for claim in claims(app))
    token = run.num_prompt_tokens - 1
    row = run.trace["decoder.1.self"].weights(head=0, queries=slice(token, token + 1))[0, 0].flatten().numpy()
    places = np.concatenate([grid.places.ravel() for grid in run.patches])
    best = int(places[row[places].argmax()])
    assert f"**{row[places].sum():.1%}** of the attention of" in page_text
    assert f"Largest: `{run.tokens[best].label}`, {row[best]:.3f}" in page_text
    assert [alt for alt in alts(app) if "over the patches of the picture" in alt]
    found = picture_rows(model, run, "decoder.1.self", token)
    assert ("Attention sinks, not evidence" in page_text) == bool(found.sinks)
    assert ("No patch of this layer is an" in page_text) == (not found.sinks)
    if family == "paligemma":  # what it writes sees its future once there is no mask, and only that claim fails
        app.segmented_control(key="ml-break").set_value("no-mask").run()
        assert ["no written token" in claim for claim in claims(app) if "material/close" in claim] == [True]
        assert load_words("model-lab")("break.no-mask") in [warning.value for warning in app.warning]


def test_a_prompt_of_ones_own_is_taken_as_it_is(open_page: OpenPage) -> None:
    app = open_page("model-lab", **{"ml-model": "llava", "ml-asked": "The cat <image> sat", "ml-looking": "21"})
    assert next(code.value for code in app.code) == "The cat <image> sat"
    assert not app.warning
    app = open_page("model-lab", **{"ml-model": "llava", "ml-asked": "<image> and <image>"})
    assert "more than once" in texts(app)
    assert not claims(app)


def test_a_picture_and_a_caption_in_the_lab(open_page: OpenPage, folders: Path) -> None:
    app = open_page("model-lab", **{"ml-model": "clip", "ml-caption": "the cat"})
    app = upload(app, "ml-picture", PICTURE)
    run = load_hub(folders / "clip", device="cpu").run("the cat", image=open_picture(PICTURE))
    page_text = texts(app)
    assert f"**{float(run.output[0]):.3f}**".replace("-", "−") in page_text
    patches = run.output[1:].reshape(4, 4)
    row, column = divmod(int(patches.argmax()), 4)
    assert f"row {row + 1}, column {column + 1} (**{float(patches.max()):.3f}**" in page_text
    assert "Heads of a dual encoder" in page_text
    assert claims(app)
    assert all(claim.startswith(":green[") for claim in claims(app))
    assert not [link for link in app.get("page_link") if "vt-lab" in link.proto.query_string]
    link = {"ml-model": "clip", "ml-section": "How it knows positions"}
    assert "learned table" in texts(open_page("model-lab", **link))


def test_maps_lie_over_the_part_that_the_model_was_shown() -> None:
    """A middle square of 8 x 6 patches of 3 x 4 pixels, of a picture whose edges the model does not see."""
    image = open_picture(PICTURE).resize((40, 24))
    grid = PatchGrid((8, 0, 32, 24), np.arange(48).reshape(6, 8))
    run = HubRun((), Trace(), torch.zeros(1), image=image, patches=(grid,))
    labels = {"row": "row", "column": "column", "weight": "weight"}
    figure = over_patches_figure(run, {"one": grid.over(np.eye(48)[11])}, labels)
    (field,) = figure.data
    assert np.argwhere(field.z).tolist() == [[1, 3]]
    assert figure.layout.yaxis.scaleratio == pytest.approx(4 / 3)
    (below,) = figure.layout.images
    assert (below.sizex, below.sizey) == (8, 6)
    shown = Image.open(io.BytesIO(base64.b64decode(below.source.split(",")[1])))
    larger = shown.width // 24
    assert shown.size == (24 * larger, 24 * larger)
    assert shown.getpixel((0, 0)) == image.convert("RGB").getpixel((8, 0))
