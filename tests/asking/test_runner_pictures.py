"""Vision models, here or elsewhere: the same answers, no trace on the way, and a picture sent once."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from asking.hub import Wanted
from asking.model_spec import Model, Models, Shipped
from asking.pictures import Viewing
from asking.request import Picture, PictureMissingError
from asking.runner import Here, There
from hosting.cache import Kept
from tests.asking.wire import Wire
from tests.tiny_vit import COLOUR, write_tiny_vit
from tests.viz_core.hub.tiny_models import build_all
from tests.viz_core.view.attention_groups import ask
from viz_core import pretrained
from viz_core.hub import HubError
from viz_core.images.drawn import SCENES
from viz_core.maps.rollout import attention_rollout
from viz_core.view.payload import View, decode_view, encode_view
from viz_core.view.picture import first_look
from viz_core.view.words import WORD_NAMES

LABELS: dict[str, str] = defaultdict(lambda: "a label")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_all(("vit", "bert"), tmp_path_factory.mktemp("models"))


@pytest.fixture(autouse=True)
def models_here(folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tiny_vit(tmp_path, COLOUR)
    monkeypatch.setattr(pretrained, "CHECKPOINTS", tmp_path)
    monkeypatch.setenv("ATLAS_MODEL_FOLDERS", str(folders))


@pytest.fixture(params=["shipped", "lab"])
def model(request: pytest.FixtureRequest) -> Model:
    return Shipped(COLOUR, "classification") if request.param == "shipped" else Wanted("vit", here=True)


@pytest.fixture
def asked(model: Model) -> Viewing:
    return Viewing(model, Picture("sample airplane", SCENES["airplane"]()))


def test_the_same_answer_and_the_same_weights(here: Here, wire: Wire, asked: Viewing) -> None:
    near, far = here.run(asked), There(wire).run(asked)
    assert far.probabilities == near.probabilities
    assert far.grid == near.grid
    assert torch.equal(far.prepared.pixels, near.prepared.pixels)
    assert far.trace.sites == near.trace.sites
    assert far.trace.nbytes == 0
    assert far.num_special == near.num_special
    for site in near.trace.sites:
        assert torch.equal(far.trace[site].weights(head=1), near.trace[site].weights(head=1))


def test_the_view_is_byte_for_byte_the_same(here: Here, wire: Wire, asked: Viewing) -> None:
    words = dict.fromkeys(WORD_NAMES, "a word")
    near, far = here.groups(asked, LABELS), There(wire).groups(asked, LABELS)
    state = first_look(near)
    assert first_look(far) == state
    wants = ["image 0 encoder-self", "token 0 encoder-self 1 q3", "map 0.encoder-self:0.1:mean:tokens"]
    one = decode_view(encode_view(View(near, words), state, wants=ask(*wants)))
    other = decode_view(encode_view(View(far, words), state, wants=ask(*wants)))
    assert one.parts.keys() == other.parts.keys()
    assert set(wants) <= one.parts.keys()
    for name, part in one.parts.items():
        assert torch.equal(part, other.parts[name]), name


@pytest.mark.parametrize(
    ("question", "arguments"),
    [
        ("row-error", ()),
        ("heads", ()),
        ("permutation", (3,)),
        ("token", (2, 1, "max", 0.3)),
        ("depth", (5,)),
        ("token-attention", (0,)),
    ],
)
def test_looks_are_worked_out_beside_the_model(
    here: Here, wire: Wire, asked: Viewing, question: str, arguments: tuple[Any, ...]
) -> None:
    near, far = here.look(asked, question, *arguments), There(wire).look(asked, question, *arguments)
    assert numbers(far) == numbers(near)
    assert len(numbers(near)) > 0


def test_relevance_of_the_answer(here: Here, wire: Wire, asked: Viewing) -> None:
    label = here.run(asked).label
    far = There(wire).look(asked, "relevance", label)
    assert torch.equal(far, here.look(asked, "relevance", label))
    assert float((far - torch.eye(len(far))).abs().max()) > 0


def test_the_token_look_is_a_row_of_the_rollout(wire: Wire, asked: Viewing) -> None:
    look = There(wire).look(asked, "token", 4, 1, "mean", 0.0)
    run = There(wire).run(asked)
    layers = [call.weights()[0] for call in run.trace]
    torch.testing.assert_close(look.rollout, attention_rollout(layers)[4])
    torch.testing.assert_close(look.raw, layers[1].mean(dim=0)[4])
    assert look.row_error < 1e-5


def test_what_is_read_off_a_model(here: Here, wire: Wire, model: Model) -> None:
    near, far = here.about(model, "facts"), There(wire).about(model, "facts")
    assert (far.title, far.labels, far.patch_size) == (near.title, near.labels, near.patch_size)
    assert torch.equal(far.filters, near.filters)
    assert torch.equal(far.filter_bias, near.filter_bias)
    assert torch.equal(There(wire).about(model, "positions", (3, 5)), here.about(model, "positions", (3, 5)))


def test_a_picture_is_sent_once(wire: Wire, asked: Viewing) -> None:
    """A digest stands for it, but where a machine does not know it yet."""
    there = There(wire)
    raw = len(asked.picture.open().tobytes())
    there.run(asked)
    there.look(asked, "heads")
    there.groups(asked, LABELS)[0].picture(1)
    assert len([size for _, size in wire.sent if size > raw]) == 1
    newcomer = There(Wire(Here(Models(), Kept(100, 2**24))))
    assert torch.equal(newcomer.look(asked, "heads")["entropy"], there.look(asked, "heads")["entropy"])


def test_without_its_picture_a_request_is_not_answered(here: Here, asked: Viewing) -> None:
    with pytest.raises(PictureMissingError):
        here.run(asked.light)
    here.run(asked)
    assert here.run(asked.light) is here.run(asked)


def test_two_pictures_are_two_answers(here: Here, model: Model) -> None:
    black, white = (Picture(name, Image.new("RGB", (32, 32), name)) for name in ("black", "white"))
    one, other = here.run(Viewing(model, black)), here.run(Viewing(model, white))
    assert one.probabilities != other.probabilities


def test_a_model_that_reads_is_a_sentence(here: Here, wire: Wire) -> None:
    reads = Wanted("bert", here=True)
    for runner in (here, There(wire)):
        with pytest.raises(HubError, match="takes a text, not a picture"):
            runner.about(reads, "facts")
        with pytest.raises(HubError, match="takes a text, not a picture"):
            runner.run(Viewing(reads, Picture("black", Image.new("RGB", (8, 8)))))


def numbers(answer: Any) -> list[float]:
    """All of an answer's numbers in their order."""
    if isinstance(answer, torch.Tensor):
        return list(np.asarray(answer).ravel().tolist())
    if isinstance(answer, dict):
        return [number for value in answer.values() for number in numbers(value)]
    if isinstance(answer, tuple):
        return [number for value in answer for number in numbers(value)]
    return [answer] if isinstance(answer, float) else numbers(vars(answer))
