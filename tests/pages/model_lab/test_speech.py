"""A speech model in the lab: tones, a file or a recording in; words with their times, each to be clicked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.model_lab.figures import sound_figure
from serving.requests.speech import out_of_order, over_time
from tests.pages.reading import alts, badges, claims, drawn, texts
from tests.viz_core.hub.families import build_all
from tests.viz_core.sounds.hostile_sounds import BAD, GOOD, encode
from ui.chapter.downloads import listing
from ui.text.words import load_words
from viz_core.hub import load_hub
from viz_core.hub.word_timestamps import TimedWord, word_times
from viz_core.sounds.open_sound import open_sound
from viz_core.sounds.tones import tone_sequence

OpenPage = Callable[..., AppTest]
TRANSCRIPT = "the cat sat, on the mat"
LINK = {"ml-model": "whisper", "ml-said": TRANSCRIPT}


pytestmark = pytest.mark.usefixtures("offline_lab")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A host's folder with a tiny model that hears, and one that reads."""
    return build_all(("whisper", "bert"), tmp_path_factory.mktemp("models"))


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
    _, opened, mean = drawn(app, "heard")
    expected, _ = over_time(model, run, [(0, 1)], words[0].steps)
    assert opened["name"] == "layer 1, head 2"
    assert np.allclose(opened["y"], expected)
    assert np.allclose(mean["y"], over_time(model, run, [(0, 1), (1, 2)], words[0].steps)[0])
    last = open_page("model-lab", **LINK, **{"ml-word": choice.options[-1]})
    assert any("with mat framed" in alt for alt in alts(last))
    choice.set_value(choice.options[2]).run()
    assert any("with sat, framed" in alt for alt in alts(app))


def test_another_head_is_opened_and_one_that_is_none_of_these(open_page: OpenPage) -> None:
    app = open_page("model-lab", **LINK, head="decoder-cross.1.0")
    assert [trace.get("name") for trace in drawn(app, "heard")][1:] == ["layer 2, head 1", "mean of aligning heads"]
    app = open_page("model-lab", **LINK, head="encoder-self.0.0")
    assert [trace.get("name") for trace in drawn(app, "heard")][1:] == ["mean of aligning heads"]


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


def test_a_host_decides_how_long_a_sound_may_be(open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATLAS_HOSTED", "1")
    monkeypatch.setenv("ATLAS_WORKERS", "0")
    monkeypatch.setenv("ATLAS_MAX_SOUND_SECONDS", "0.3")
    app = open_page("model-lab", **{"ml-model": "whisper", "ml-sound": "A file"})
    app.file_uploader(key="ml-sound-file").upload("a.wav", GOOD["FLAC"], "audio/flac").run()
    assert "lasts 0.5 s; at most 0.3 s" in texts(app)


def test_no_cell_of_a_table_is_a_formula() -> None:
    table = listing({"word": ["=1+1", "@a", "-", "a=b", 'say "x", y'], "start": ["0.1"] * 5}).decode()
    assert table.splitlines() == ["word,start", "'=1+1,0.1", "'@a,0.1", "'-,0.1", "a=b,0.1", '"say ""x"", y",0.1']


def test_times_that_go_back_are_told() -> None:
    words = [TimedWord("a", 0.5, 0.4, (0, 1)), TimedWord("b", 0.2, 0.9, (1, 2))]
    assert out_of_order(words) == pytest.approx(0.3)
    assert out_of_order(words[:1]) == pytest.approx(0.1)
    assert out_of_order(()) == 0


def test_the_figure_of_a_sound_without_words(folders: Path) -> None:
    sound = load_hub(folders / "whisper", device="cpu").run(sound=tone_sequence(), max_new_tokens=1).sound
    assert sound is not None
    figure = sound_figure(sound, {}, (), 0, load_words("model-lab").group("figure"))
    assert figure.data[0].z.shape == sound.spectrogram.shape
    assert not figure.layout.shapes
