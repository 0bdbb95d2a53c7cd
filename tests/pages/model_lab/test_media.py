"""Pictures, sounds and videos in the lab, and its vision models in the vision chapter."""

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
from tests.pages.reading import alts, badges, claim_names, claims, places, texts
from tests.viz_core.images.hostile_pictures import encode, quarters
from tests.viz_core.images.test_preprocessing import COLOURS, animation, still
from tests.viz_core.sounds.test_open_sound import BAD, GOOD
from tests.viz_core.sounds.test_open_sound import encode as encode_sound
from viz_core.hub import HubRun, PatchGrid, load_hub
from viz_core.hub.word_timestamps import word_times
from viz_core.images.open_image import open_picture
from viz_core.lab.fields.sounds import sum_moments
from viz_core.lab.runs import over_time
from viz_core.lab.sinks import picture_rows
from viz_core.sounds.open_sound import open_sound
from viz_core.sounds.sound import tone_sequence
from viz_core.trace import Trace

OpenPage = Callable[..., AppTest]
TRANSCRIPT = "the cat sat, on the mat"
LINK = {"ml-model": "whisper", "ml-said": TRANSCRIPT}
pytestmark = pytest.mark.usefixtures("offline_lab")
QUESTION = "Where is the cat?"


def test_the_tones_and_a_text_over_them(open_page: OpenPage, folders: Path) -> None:
    model = load_hub(folders / "whisper", device="cpu")
    run = model.run(sound=tone_sequence(), target=TRANSCRIPT)
    words = word_times(model, run)
    app = open_page("model-lab", **LINK)
    page_text = texts(app)
    assert not app.error
    assert not app.warning
    assert "2.70 s of sound" in page_text
    (choice,) = [group for group in app.get("button_group") if group.key == "ml-word"]
    labels = [option.replace("\\", "") for option in choice.options]
    assert labels == [f"{word.text} {word.start:.2f}–{word.end:.2f}" for word in words]
    assert "[layer 1, head 2](#head=decoder-cross.0.1)" in page_text
    assert "[layer 2, head 3](#head=decoder-cross.1.2)" in page_text
    assert badges(app)["times of 6 words never decrease"]
    assert all("material/check" in claim for claim in claims(app))
    steps = [word.steps for word in words]
    for times, heads in (("opened", [(0, 1)]), ("aligning", [(0, 1), (1, 2)])):
        line = places(open_page("model-lab", **LINK, **{"ml-times": times}))
        expected, _ = over_time(model, run, heads, steps)
        assert np.allclose(line["weights"], sum_moments(expected.numpy(), 2.7), atol=1e-4)
        assert [token.strip() for token in line["tokens"]] == [word.text for word in words]
    choice.set_value(choice.options[2]).run()
    assert places(app)["start"] == line["numKeys"] + 2


def test_a_file_is_heard_and_what_is_none_gets_a_sentence(open_page: OpenPage, folders: Path) -> None:
    options = {"ml-spoken": "fr", "ml-task": "English translation"}
    app = open_page("model-lab", **{"ml-model": "whisper", "ml-sound": "A file", "ml-new": "4"}, **options)
    assert "No sound yet" in texts(app)
    assert app.selectbox(key="ml-spoken").options == ["detect", "en", "fr"]
    model = load_hub(folders / "whisper", device="cpu")
    content = GOOD["eight channels"]
    expected = model.run(sound=open_sound(content), max_new_tokens=4, language="fr", task="translate")
    app.file_uploader(key="ml-sound-file").upload("a.wav", content, "audio/wav").run()
    assert f"It writes: **{expected.text}**" in texts(app)
    assert "0.50 s of sound" in texts(app)
    for name in ("1 Hz", "a picture"):
        app.file_uploader(key="ml-sound-file").upload("a.wav", BAD[name][0], "audio/wav").run()
        assert not app.exception
        assert BAD[name][1] in texts(app)
    long = encode_sound(np.zeros(4 * 8000), 8000, "WAV")
    app.file_uploader(key="ml-sound-file").upload("a.wav", long, "audio/wav").run()
    assert "the model hears at most 3 s at once" in texts(app)


def test_a_host_decides_how_long_a_sound_may_be(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATLAS_HOSTED", "1")
    monkeypatch.setenv("ATLAS_WORKERS", "0")
    monkeypatch.setenv("ATLAS_MAX_SOUND_SECONDS", "0.3")
    app = open_page("model-lab", **{"ml-model": "whisper", "ml-sound": "A file"})
    app.file_uploader(key="ml-sound-file").upload("a.wav", GOOD["FLAC"], "audio/flac").run()
    assert "lasts 0.5 s; at most 0.3 s" in texts(app)


def open_video_page(open_page: OpenPage, family: str, **link: str) -> AppTest:
    values = {"ml-model": family, "ml-asked": QUESTION, "ml-new": "2", "ml-medium": "frames", **link}
    return open_page("model-lab", **values)


def test_an_uploaded_animation_and_pictures_as_frames(open_page: OpenPage, folders: Path) -> None:
    app = open_video_page(open_page, "smolvlm")
    uploader = app.file_uploader(key="ml-video")
    uploader.upload("clip.gif", animation("GIF", 3, duration=500), "image/gif").run()
    assert not app.exception
    assert "The video lasts 1.5 s" in texts(app)
    assert app.query_params["ml-video-file"] == "clip.gif"


def test_a_bad_file_is_a_sentence(open_page: OpenPage) -> None:
    app = open_video_page(open_page, "smolvlm")
    for content, sentence in (
        (still(COLOURS[0]), "at least 2 frames"),
        (animation("GIF")[:150], "cut short"),
        (b"\0\0\0\x20ftypisom\0\0\2\0isomiso2mp41", "This is a video file"),
    ):
        app.file_uploader(key="ml-video").upload("clip.gif", content, "image/gif").run()
        assert not app.exception
        assert sentence in texts(app)
        assert not claims(app)


PICTURE = encode(quarters(), "PNG")


def upload(app: AppTest, key: str, content: bytes) -> AppTest:
    app.file_uploader(key=key).upload("picture.png", content, "image/png").run()
    assert not app.exception, [error.message for error in app.exception]
    return app


@pytest.mark.parametrize("family", ["vit", "registers"])
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


@pytest.mark.parametrize(
    ("name", "page_text"), [("bert", "takes a text, not a picture"), ("../../etc/passwd", "is not on this machine")]
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


def test_a_picture_and_a_question_in_the_lab(open_page: OpenPage, folders: Path) -> None:
    """This model reads its prompt in both directions; what it writes sees its future once there is no mask."""
    app = open_page("model-lab", **{"ml-model": "paligemma", "ml-asked": QUESTION, "ml-new": "4"})
    app = upload(app, "ml-picture", PICTURE)
    model = load_hub(folders / "paligemma", device="cpu")
    prompt = model.card.prompt.replace("{text}", QUESTION)
    run = model.run(prompt, image=open_picture(PICTURE), max_new_tokens=4)
    page_text = texts(app)
    assert f"{len(run.tokens)} tokens" in page_text
    assert run.prompt.strip() in [code.value for code in app.code]
    assert f"**{sum(grid.places.size for grid in run.patches)}** patches" in page_text
    assert claim_names(app) == ["rows", "future-written", "score-products"]
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
    app.segmented_control(key="ml-break").set_value("no-mask").run()
    assert ["no written token" in claim for claim in claims(app) if "material/close" in claim] == [True]


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
    assert claims(app)
    assert all(claim.startswith(":green[") for claim in claims(app))
    assert not [link for link in app.get("page_link") if "vt-lab" in link.proto.query_string]


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
