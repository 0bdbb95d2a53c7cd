"""The lab's models, here or elsewhere: the same answers, neither trace nor logits on the way, the host's limits."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import pytest
import torch

from benchmarks.view_bytes import decode_view
from serving.requests.hub import HubModelSpec, HubRequest
from serving.requests.lab import local_model_names
from serving.requests.models import NoModel
from serving.requests.request import TONES, Picture, SoundInput
from serving.runners.remote import RemoteRunner
from serving.runners.runner import LocalRunner
from tests.serving.runners.wire import Wire
from tests.viz_core.hub.families import build_all
from tests.viz_core.images.hostile_pictures import quarters
from tests.viz_core.view.attention_groups import read_requests
from viz_core.hub import HubError, HubModel, Sampling
from viz_core.hub.runs.run import RunInputs
from viz_core.lab.runs import map_residuals, position_schemes, read_card
from viz_core.sounds.sound import tone_sequence
from viz_core.view.components import WORD_NAMES
from viz_core.view.hub import initial_state
from viz_core.view.payload import View, encode_view

LABELS: dict[str, str] = defaultdict(lambda: "a label")
KINDS = ("bert", "gpt2", "t5", "vit", "whisper")


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_all(KINDS, tmp_path_factory.mktemp("models"))


@pytest.fixture(autouse=True)
def models_here(folders: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATLAS_MODEL_FOLDERS", str(folders))
    monkeypatch.delenv("ATLAS_MODELS", raising=False)


@pytest.fixture(params=KINDS)
def hub_request(request: pytest.FixtureRequest) -> HubRequest:
    wanted = HubModelSpec(request.param, offline=True)
    if request.param == "vit":
        return HubRequest(wanted, RunInputs(image=Picture("quarters", quarters())))
    if request.param == "whisper":
        return HubRequest(wanted, RunInputs(sound=SoundInput(TONES, tone_sequence()), max_new_tokens=4))
    new = {"gpt2": 4, "t5": 5}.get(request.param, 0)
    return HubRequest(wanted, RunInputs("The cat sat on the mat.", max_new_tokens=new))


def test_the_same_run_without_its_trace_and_its_logits(
    local: LocalRunner, remote: RemoteRunner, hub_request: HubRequest
) -> None:
    here, there = local.run(hub_request), remote.run(hub_request)
    for name in ("tokens", "decoder_tokens", "target_tokens", "text", "complete", "labels", "grid"):
        assert getattr(there, name) == getattr(here, name), name
    assert there.output.shape == here.output.shape
    assert there.output.is_meta
    assert there.trace.nbytes == 0
    assert [maps.id for maps in there.maps] == [maps.id for maps in here.maps]
    for call in here.trace:
        assert torch.equal(there.trace[call.site].weights(head=0), call.weights(head=0))


def test_the_view_is_byte_for_byte_the_same(local: LocalRunner, remote: RemoteRunner, hub_request: HubRequest) -> None:
    words = dict.fromkeys(WORD_NAMES, "a word")
    here, there = local.groups(hub_request, LABELS), remote.groups(hub_request, LABELS)
    state = initial_state(here, local.run(hub_request))
    assert initial_state(there, remote.run(hub_request)) == state
    wants = [f"picture 0 {group.id} {layer}" for group in here for layer in range(len(group.calls))]
    one = decode_view(encode_view(View(here, words), state, wants=read_requests(*wants)))
    other = decode_view(encode_view(View(there, words), state, wants=read_requests(*wants)))
    assert one.header["parts"] == other.header["parts"]
    assert set(wants) <= one.parts.keys()
    for name, part in one.parts.items():
        assert torch.equal(part, other.parts[name]), name
    for group, distant in zip(here, there, strict=True):
        for layer in range(len(group.calls)):
            assert distant.picture(layer).fingerprints == group.picture(layer).fingerprints


def test_what_crosses_before_anyone_looks_at_a_map(remote: RemoteRunner, wire: Wire) -> None:
    long = HubRequest(HubModelSpec("gpt2", offline=True), RunInputs("The cat sat on the mat. " * 8, max_new_tokens=0))
    run = remote.run(long)
    for group in remote.groups(long, LABELS):
        for layer in range(len(group.calls)):
            group.picture(layer)
    remote.evaluate(long, map_residuals)
    whole = sum(4 * call.num_heads * call.num_queries * call.num_keys for call in run.trace)
    logits = 4 * run.output.numel()
    assert sum(size for _, size in wire.received) < min(whole, logits) / 2


def test_residuals_next_words_card_and_schemes(
    local: LocalRunner, remote: RemoteRunner, hub_request: HubRequest
) -> None:
    assert remote.evaluate(hub_request, map_residuals) == local.evaluate(hub_request, map_residuals)
    assert remote.evaluate_model(hub_request.model, read_card) == local.evaluate_model(hub_request.model, read_card)
    here, there = (
        local.evaluate_model(hub_request.model, position_schemes),
        remote.evaluate_model(hub_request.model, position_schemes),
    )
    assert [scheme.where for scheme in there] == [scheme.where for scheme in here]
    for one, other in zip(here, there, strict=True):
        assert torch.equal(one.values, other.values)
    if local.evaluate_model(hub_request.model, read_card).head == "words":
        assert remote.evaluate(hub_request, HubModel.next_words, -1, 5, 0.7) == local.evaluate(
            hub_request, HubModel.next_words, -1, 5, 0.7
        )


def test_sampling_is_part_of_the_request(local: LocalRunner, remote: RemoteRunner) -> None:
    wanted = HubModelSpec("gpt2", offline=True)
    for seed in (1, 2):
        hub_request = HubRequest(wanted, RunInputs("The cat", max_new_tokens=8, sampling=Sampling(1.5, 0, 1.0, seed)))
        assert remote.run(hub_request).text == local.run(hub_request).text
    greedy = HubRequest(wanted, RunInputs("The cat", max_new_tokens=8))
    assert local.run(greedy).text != local.run(hub_request).text


def test_the_models_there_are_those_of_the_machine_that_is_asked(local: LocalRunner, remote: RemoteRunner) -> None:
    assert set(KINDS) <= set(remote.evaluate_model(NoModel(), local_model_names))
    assert local.evaluate_model(NoModel(), local_model_names) == remote.evaluate_model(NoModel(), local_model_names)


@pytest.mark.parametrize("distant", [False, True])
def test_the_host_sets_the_limits(
    local: LocalRunner, remote: RemoteRunner, distant: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner, wanted = remote if distant else local, HubModelSpec("bert", offline=True)
    monkeypatch.setenv("ATLAS_MAX_CHARACTERS", "20")
    with pytest.raises(HubError, match="21 characters; at most 20"):
        runner.run(HubRequest(wanted, RunInputs("x" * 21)))
    with pytest.raises(HubError, match="21 characters; at most 20"):
        runner.run(HubRequest(wanted, RunInputs("x", "x" * 21)))
    monkeypatch.setenv("ATLAS_MODEL_MEMORY_MB", "1")
    with pytest.raises(HubError, match="nothing-of-the-kind"):
        runner.load(HubModelSpec("nothing-of-the-kind", offline=True))
    with pytest.raises(HubError):
        runner.load(HubModelSpec("../../etc", folder="../../etc"))
