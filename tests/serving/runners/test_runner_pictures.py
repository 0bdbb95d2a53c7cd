"""Vision models, here or elsewhere: the same answers, no trace on the way, and a picture sent once."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from benchmarks.view_bytes import decode_view
from serving.compute.cache import LRUCache
from serving.requests.hub import HubModelSpec, HubVisionSpec
from serving.requests.models import ModelRegistry, ModelSpec, ShippedClassifier
from serving.requests.request import ContributionRequest, PayloadMissingError, Picture
from serving.requests.shipped import ClassificationRequest
from serving.runners.remote import ModelServer, RemoteRunner
from serving.runners.runner import LocalRunner
from tests.serving.runners.wire import Wire
from tests.tiny_vit import COLOUR, write_tiny_vit
from tests.viz_core.hub.families import build_all
from tests.viz_core.view.attention_groups import read_requests
from viz_core.hub import HubError
from viz_core.images.samples import drawn_picture
from viz_core.lab.pictures import (
    heads_measured,
    label_relevance,
    patch_positions,
    picture_facts,
    token_in_layer,
    token_over_patches,
)
from viz_core.lessons.vision_transformer.patches import patches_shuffled
from viz_core.maps.rollout import attention_rollout
from viz_core.pretrained import shipped
from viz_core.pretrained.picture_model import PictureModel
from viz_core.view.components import WORD_NAMES
from viz_core.view.payload import View, encode_view
from viz_core.view.shipped import initial_state

LABELS: dict[str, str] = defaultdict(lambda: "a label")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_all(("vit", "bert"), tmp_path_factory.mktemp("models"))


@pytest.fixture(autouse=True)
def models_here(folders: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tiny_vit(tmp_path, COLOUR)
    monkeypatch.setattr(shipped, "CHECKPOINTS", tmp_path)
    monkeypatch.setenv("ATLAS_MODEL_FOLDERS", str(folders))


@pytest.fixture(params=["shipped", "lab"])
def model(request: pytest.FixtureRequest) -> ModelSpec[PictureModel]:
    if request.param == "shipped":
        return ShippedClassifier(COLOUR)
    return HubVisionSpec(HubModelSpec("vit", offline=True))


@pytest.fixture
def picture_request(model: ModelSpec[PictureModel]) -> ClassificationRequest:
    return ClassificationRequest(model, Picture("sample airplane", drawn_picture("airplane")))


def test_the_same_answer_and_the_same_weights(
    local: LocalRunner, remote: RemoteRunner, picture_request: ClassificationRequest
) -> None:
    here, there = local.run(picture_request), remote.run(picture_request)
    assert there.probabilities == here.probabilities
    assert there.grid == here.grid
    assert torch.equal(there.prepared.pixels, here.prepared.pixels)
    assert there.trace.sites == here.trace.sites
    assert there.trace.nbytes == 0
    assert there.num_special == here.num_special
    for site in here.trace.sites:
        assert torch.equal(there.trace[site].weights(head=1), here.trace[site].weights(head=1))


def test_the_view_is_byte_for_byte_the_same(
    local: LocalRunner, remote: RemoteRunner, picture_request: ClassificationRequest
) -> None:
    words = dict.fromkeys(WORD_NAMES, "a word")
    here, there = local.groups(picture_request, LABELS), remote.groups(picture_request, LABELS)
    state = initial_state(here)
    assert initial_state(there) == state
    wants = ["image 0 encoder-self", "token 0 encoder-self 1 q3", "map 0.encoder-self:0.1:mean:tokens"]
    one = decode_view(encode_view(View(here, words), state, wants=read_requests(*wants)))
    other = decode_view(encode_view(View(there, words), state, wants=read_requests(*wants)))
    assert one.parts.keys() == other.parts.keys()
    assert set(wants) <= one.parts.keys()
    for name, part in one.parts.items():
        assert torch.equal(part, other.parts[name]), name


@pytest.mark.parametrize(
    ("question", "arguments"),
    [
        (heads_measured, ()),
        (patches_shuffled, (3,)),
        (token_in_layer, (2, 1, "max", 0.3)),
        (token_over_patches, (0,)),
    ],
)
def test_questions_are_answered_beside_the_model(
    local: LocalRunner,
    remote: RemoteRunner,
    picture_request: ClassificationRequest,
    question: Callable[..., Any],
    arguments: tuple[Any, ...],
) -> None:
    here, there = (
        local.evaluate(picture_request, question, *arguments),
        remote.evaluate(picture_request, question, *arguments),
    )
    assert numbers(there) == numbers(here)
    assert len(numbers(here)) > 0


def test_contributions_are_asked_like_weights(
    local: LocalRunner, remote: RemoteRunner, picture_request: ClassificationRequest
) -> None:
    carried = ContributionRequest(picture_request)
    here, there, plain = local.run(carried), remote.run(carried), local.run(picture_request)
    assert here.probabilities == there.probabilities == plain.probabilities
    for site in here.trace.sites:
        shares = here.trace[site].weights(head=1)
        assert torch.equal(there.trace[site].weights(head=1), shares)
        torch.testing.assert_close(shares.sum(dim=-1), torch.ones(shares.shape[:-1]))
        assert not torch.allclose(shares, plain.trace[site].weights(head=1), atol=1e-3)
    groups = remote.groups(carried, LABELS)
    assert torch.equal(groups[0].picture(0).thumbnails, local.groups(carried, LABELS)[0].picture(0).thumbnails)


def test_relevance_of_the_answer(
    local: LocalRunner, remote: RemoteRunner, picture_request: ClassificationRequest
) -> None:
    label = local.run(picture_request).label
    there = remote.evaluate(picture_request, label_relevance, label)
    assert torch.equal(there, local.evaluate(picture_request, label_relevance, label))
    assert float((there - torch.eye(len(there))).abs().max()) > 0


def test_a_tokens_rollout_is_a_row_of_the_rollout(remote: RemoteRunner, picture_request: ClassificationRequest) -> None:
    found = remote.evaluate(picture_request, token_in_layer, 4, 1, "mean", 0.0)
    run = remote.run(picture_request)
    layers = [call.weights()[0] for call in run.trace]
    torch.testing.assert_close(found.rollout, attention_rollout(layers)[4])
    torch.testing.assert_close(found.raw, layers[1].mean(dim=0)[4])
    assert found.row_error < 1e-5


def test_what_is_read_off_a_model(local: LocalRunner, remote: RemoteRunner, model: ModelSpec[PictureModel]) -> None:
    here, there = local.evaluate_model(model, picture_facts), remote.evaluate_model(model, picture_facts)
    assert (there.title, there.labels, there.patch_size) == (here.title, here.labels, here.patch_size)
    assert torch.equal(there.filters, here.filters)
    assert torch.equal(there.filter_bias, here.filter_bias)
    assert torch.equal(
        remote.evaluate_model(model, patch_positions, (3, 5)),
        local.evaluate_model(model, patch_positions, (3, 5)),
    )


def test_a_picture_is_sent_once(remote: RemoteRunner, wire: Wire, picture_request: ClassificationRequest) -> None:
    """A digest stands for it, but where a machine does not know it yet."""
    raw = len(picture_request.picture.open().tobytes())
    remote.run(picture_request)
    remote.evaluate(picture_request, heads_measured)
    remote.groups(picture_request, LABELS)[0].picture(1)
    assert len([size for _, size in wire.sent if size > raw]) == 1
    newcomer = RemoteRunner(Wire(ModelServer(ModelRegistry(), LRUCache(100, 2**24))), LRUCache(100, 2**24))
    assert torch.equal(
        newcomer.evaluate(picture_request, heads_measured)["entropy"],
        remote.evaluate(picture_request, heads_measured)["entropy"],
    )


def test_without_its_picture_a_request_is_not_answered(
    local: LocalRunner, picture_request: ClassificationRequest
) -> None:
    with pytest.raises(PayloadMissingError):
        local.run(picture_request.without_payload)
    local.run(picture_request)
    assert local.run(picture_request.without_payload) is local.run(picture_request)


def test_two_pictures_are_two_answers(local: LocalRunner, model: ModelSpec[PictureModel]) -> None:
    black, white = (Picture(name, Image.new("RGB", (32, 32), name)) for name in ("black", "white"))
    one, other = local.run(ClassificationRequest(model, black)), local.run(ClassificationRequest(model, white))
    assert one.probabilities != other.probabilities


def test_a_model_with_two_faces_is_loaded_once() -> None:
    registry, hub = ModelRegistry(), HubModelSpec("vit", offline=True)
    assert registry(HubVisionSpec(hub)).hub is registry(hub)
    assert HubVisionSpec(hub).affinity == hub.affinity


def test_a_model_that_reads_is_a_sentence(local: LocalRunner, remote: RemoteRunner) -> None:
    reads = HubVisionSpec(HubModelSpec("bert", offline=True))
    for runner in (local, remote):
        with pytest.raises(HubError, match="takes a text, not a picture"):
            runner.evaluate_model(reads, picture_facts)
        with pytest.raises(HubError, match="takes a text, not a picture"):
            runner.run(ClassificationRequest(reads, Picture("black", Image.new("RGB", (8, 8)))))


def numbers(answer: Any) -> list[float]:
    """All of an answer's numbers in their order."""
    if isinstance(answer, torch.Tensor):
        return list(np.asarray(answer).ravel().tolist())
    if isinstance(answer, dict):
        return [number for value in answer.values() for number in numbers(value)]
    if isinstance(answer, tuple):
        return [number for value in answer for number in numbers(value)]
    return [answer] if isinstance(answer, float) else numbers(vars(answer))
