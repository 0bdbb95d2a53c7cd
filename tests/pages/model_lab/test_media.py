"""Sounds and videos in the lab."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.model_lab.figures import frames_figure
from tests.pages.reading import alts, badges, claims, places, texts
from tests.viz_core.images.test_preprocessing import COLOURS, animation, still
from tests.viz_core.sounds.test_open_sound import BAD, GOOD, encode
from ui.compute.pictures import sample_video
from ui.text.words import load_words
from viz_core.hub import HubModel, load_hub
from viz_core.hub.word_timestamps import TimedWord, word_times
from viz_core.images.open_image import open_video
from viz_core.lab.fields.sounds import sum_moments
from viz_core.lab.runs import out_of_order, over_time
from viz_core.lab.sinks import picture_rows
from viz_core.sounds.open_sound import open_sound
from viz_core.sounds.sound import tone_sequence

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
    assert "always reads 3 s" in page_text
    assert "sound, and writes with BPE" in page_text
    assert "at most 3 s at once" in page_text
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
    other = places(open_page("model-lab", **LINK, lang="pt-BR"))
    assert other["places"][1]["name"] == line["places"][1]["name"].replace(".", ",")
    last = open_page("model-lab", **LINK, **{"ml-word": choice.options[-1]})
    assert places(last)["start"] == line["numKeys"] + len(words) - 1
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
    long = encode(np.zeros(4 * 8000), 8000, "WAV")
    app.file_uploader(key="ml-sound-file").upload("a.wav", long, "audio/wav").run()
    assert "the model hears at most 3 s at once" in texts(app)


def test_the_microphone_is_heard(open_page: OpenPage) -> None:
    app = open_page("model-lab", **{"ml-model": "whisper", "ml-sound": "The microphone", "ml-new": "2"})
    assert "No sound yet" in texts(app)
    app.audio_input(key="ml-microphone").upload("recording.wav", GOOD["WAV of a microphone"], "audio/wav").run()
    assert "0.50 s of sound" in texts(app)
    assert badges(app)


def test_heads_of_a_pooling_over_the_picture(open_page: OpenPage, folders: Path) -> None:
    shown = places(open_page("model-lab", **{"ml-model": "siglip"}))
    weights = np.array(shown["weights"])
    assert weights.shape == (3, 16)  # two heads and their mean
    np.testing.assert_allclose(weights.sum(axis=1), 1, atol=1e-3)
    np.testing.assert_allclose(weights[2], weights[:2].mean(axis=0), atol=1e-4)
    assert np.abs(weights[0] - weights[1]).max() > 0.01
    assert shown["panels"][0]["picture"]


def test_a_host_decides_how_long_a_sound_may_be(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATLAS_HOSTED", "1")
    monkeypatch.setenv("ATLAS_WORKERS", "0")
    monkeypatch.setenv("ATLAS_MAX_SOUND_SECONDS", "0.3")
    app = open_page("model-lab", **{"ml-model": "whisper", "ml-sound": "A file"})
    app.file_uploader(key="ml-sound-file").upload("a.wav", GOOD["FLAC"], "audio/flac").run()
    assert "lasts 0.5 s; at most 0.3 s" in texts(app)


def test_times_that_go_back_are_told() -> None:
    words = [TimedWord("a", 0.5, 0.4, (0, 1)), TimedWord("b", 0.2, 0.9, (1, 2))]
    assert out_of_order(words) == pytest.approx(0.3)
    assert out_of_order(words[:1]) == pytest.approx(0.1)
    assert out_of_order(()) == 0


def open_video_page(open_page: OpenPage, family: str, **link: str) -> AppTest:
    values = {"ml-model": family, "ml-asked": QUESTION, "ml-new": "2", "ml-medium": "frames", **link}
    return open_page("model-lab", **values)


def model_of(folders: Path, family: str) -> HubModel:
    return load_hub(folders / family, device="cpu")


@pytest.mark.parametrize("family", ["qwen2_vl", "internvl"])
def test_the_page_says_what_the_library_says(open_page: OpenPage, folders: Path, family: str) -> None:
    app = open_video_page(open_page, family)
    assert not app.exception, [error.message for error in app.exception]
    model = model_of(folders, family)
    files = sample_video("airplane").payload()
    run = model.run(model.card.prompt.replace("{text}", QUESTION), video=open_video(files), max_new_tokens=2)
    page_text = texts(app)
    assert f"{len(run.tokens)} tokens" in page_text
    token = run.num_prompt_tokens - 1
    found = picture_rows(model, run, "decoder.1.self", token)
    places = np.concatenate([grid.places.ravel() for grid in run.patches])
    row = found.weights[0]
    assert f"**{row[places].sum():.1%}** of the attention of" in page_text
    best = int(places[row[places].argmax()])
    assert f"Largest: `{run.tokens[best].label}`, {row[best]:.3f}" in page_text
    number = int(np.argmax([row[grid.places].sum() for grid in run.patches]))
    merged = family == "qwen2_vl"
    assert (f"frames {2 * number + 1}–{2 * number + 2}" if merged else f"frame {number + 1}") in page_text
    assert ("merges 2 frames in time" in page_text) == merged
    words = load_words("model-lab")
    assert words("tower-of-video") in page_text
    assert ("Attention sinks, not evidence" in page_text) == bool(found.sinks)
    assert ("No patch of this layer is an" in page_text) == (not found.sinks)
    assert [alt for alt in alts(app) if "over the frames of the video" in alt]
    assert claims(app)
    assert all(claim.startswith(":green[") for claim in claims(app))


def test_an_uploaded_animation_and_pictures_as_frames(open_page: OpenPage, folders: Path) -> None:
    app = open_video_page(open_page, "smolvlm")
    uploader = app.file_uploader(key="ml-video")
    uploader.upload("clip.gif", animation("GIF", 3, duration=500), "image/gif").run()
    assert not app.exception
    assert "The video lasts 1.5 s" in texts(app)
    assert app.query_params["ml-video-file"] == "clip.gif"
    again = open_video_page(open_page, "smolvlm", **{"ml-video-file": "clip.gif"})
    assert [note for note in again.info if r"clip\.gif" in note.value]


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


def test_a_model_without_videos_offers_none(open_page: OpenPage) -> None:
    app = open_video_page(open_page, "llava")
    assert not app.exception
    assert not [control for control in app.segmented_control if control.key == "ml-medium"]
    assert claims(app)


def test_one_map_a_frame_on_one_scale(folders: Path) -> None:
    """Five frames: three maps of merged ones, in one strip, with what they add below; the sink is outlined in both."""
    model = model_of(folders, "qwen2_vl")
    video = open_video([still((40 * i, 10, 10), (24, 16)) for i in range(5)])
    run = model.run(f"<image> {QUESTION}", video=video, max_new_tokens=0)
    weights = np.arange(len(run.tokens), dtype=float)
    labels = {"row": "row", "column": "column", "weight": "weight", "added": "added"}
    sink = int(run.patches[1].places[0, 0])
    figure = frames_figure(
        run, ["1–2", "3–4", "5"], {"head": (weights, "weight"), "adds": (weights / 2, "added")}, (sink,), labels
    )
    assert len(figure.data) == 6
    largest = max(grid.places.max() for grid in run.patches)
    assert sorted({field.zmax for field in figure.data}) == [largest / 2, largest]
    assert [title.text for title in figure.layout.annotations] == ["1–2", "3–4", "5", "head", "adds"]
    assert len(figure.layout.shapes) == 2 * 2
    assert len(figure.layout.images) == 6
    for field, grid in zip(figure.data[:3], run.patches, strict=True):
        np.testing.assert_allclose(field.z, grid.over(weights))


def test_sinks_are_named_in_each_language(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    """With limits that every patch meets: random models have no sinks of their own. A question of its own is not
    answered from the cache."""
    monkeypatch.setattr("viz_core.lab.sinks.SINK_WEIGHT", 0.0)
    monkeypatch.setattr("viz_core.lab.sinks.SINK_LENGTH", 1e9)
    page = open_video_page(open_page, "qwen2_vl", lang="zh-TW", **{"ml-asked": "What is red?"})
    assert "不是證據**：有 32 個加框的圖塊" in texts(page)
