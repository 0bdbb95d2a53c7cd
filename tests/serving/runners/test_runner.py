"""One way to run models, here or in another process: the same results, no trace on the way, the host's limits."""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from typing import Any

import pytest
import torch
from PIL import Image
from torch import Tensor

from benchmarks.view_bytes import decode_view
from serving.compute.cache import LRUCache
from serving.requests.hub import HubModelSpec, HubRequest, HubVisionSpec
from serving.requests.lab import local_model_names
from serving.requests.models import ModelRegistry, NoModel, ShippedClassifier, ShippedTranslator
from serving.requests.request import TONES, ContributionRequest, PayloadMissingError, Picture, RunRequest, SoundInput
from serving.requests.shipped import ClassificationRequest, TranslationRequest
from serving.runners.remote import ModelServer, RemoteRunner
from serving.runners.runner import LocalRunner
from tests.serving.runners.wire import Wire
from tests.viz_core.hub.families import build_all
from tests.viz_core.images.hostile_pictures import quarters
from tests.viz_core.view.attention_groups import read_requests
from viz_core.hub import HubError, HubModel, Sampling
from viz_core.hub.runs.run import RunInputs
from viz_core.lab.pictures import (
    heads_measured,
    label_relevance,
    patch_positions,
    picture_facts,
    token_in_layer,
    token_over_patches,
)
from viz_core.lab.runs import map_residuals, position_schemes, read_card
from viz_core.lessons.transformer.layers import encoder_walk, future_leak, translation_residuals
from viz_core.lessons.vision_transformer import patches_shuffled
from viz_core.pretrained import TextError, Translation, Translator
from viz_core.pretrained.samples import GARMENTS, drawn_picture
from viz_core.sounds.sound import tone_sequence
from viz_core.view.components import WORD_NAMES
from viz_core.view.payload import View, encode_view
from viz_core.view.requests import MapRequest, Part
from viz_core.view.shipped import aligning_head
from viz_core.view.state import ViewState

LABELS: dict[str, str] = defaultdict(lambda: "a label")
WORDS = dict.fromkeys(WORD_NAMES, "a word")
TINY = ShippedTranslator("tiny-en-fr")
CALM = TranslationRequest(TINY, "The dog is in the house.")
GREY, LAB = ShippedClassifier("vit-fashion-mnist"), HubVisionSpec(HubModelSpec("vit", offline=True))
CLASSIFIED = ClassificationRequest(GREY, Picture("sample", drawn_picture(GARMENTS[0])))
KINDS = ("bert", "gpt2", "t5", "vit", "whisper")


def lab(kind: str, text: str | None = None, **inputs: Any) -> HubRequest:
    return HubRequest(HubModelSpec(kind, offline=True), RunInputs(text, **inputs))


REQUESTS: dict[str, RunRequest[Any, Any]] = {
    "translator": CALM,
    "classifier": CLASSIFIED,
    "lab classifier": ClassificationRequest(LAB, Picture("airplane", drawn_picture("airplane"))),
    "bert": lab("bert", "The cat sat on the mat."),
    "gpt2": lab("gpt2", "The cat sat on the mat.", max_new_tokens=4),
    "t5": lab("t5", "The cat sat on the mat.", max_new_tokens=5),
    "vit": lab("vit", image=Picture("quarters", quarters())),
    "whisper": lab("whisper", sound=SoundInput(TONES, tone_sequence()), max_new_tokens=4),
}
RESULTS = (
    "text target_ids source_tokens tokens decoder_tokens target_tokens complete labels grid probabilities num_special"
).split()


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_all(KINDS, tmp_path_factory.mktemp("models"))


@pytest.fixture
def load(translator: Translator, folders: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    monkeypatch.setenv("ATLAS_MODEL_FOLDERS", str(folders))
    monkeypatch.delenv("ATLAS_MODELS", raising=False)
    registry = ModelRegistry()
    return lambda model, *_: translator if model == TINY else registry(model)


@pytest.fixture
def local(load: Callable[..., Any]) -> LocalRunner:
    return LocalRunner(load, LRUCache(100, 2**24))


@pytest.fixture
def wire(load: Callable[..., Any]) -> Wire:
    """To a machine of its own: what was asked here, it has not seen."""
    return Wire(ModelServer(load, LRUCache(100, 2**24)))


@pytest.fixture
def remote(wire: Wire) -> RemoteRunner:
    return RemoteRunner(wire, LRUCache(100, 2**24))


every_request = pytest.mark.parametrize("wanted", REQUESTS.values(), ids=list(REQUESTS))


@every_request
def test_a_run_and_its_view_are_the_same_from_elsewhere(
    local: LocalRunner, remote: RemoteRunner, wire: Wire, wanted: RunRequest[Any, Any]
) -> None:
    here, there = local.run(wanted), remote.run(wanted)
    found = [name for name in RESULTS if hasattr(here, name)]
    assert {name: getattr(there, name) for name in found} == {name: getattr(here, name) for name in found}
    assert len(found) >= 3
    if isinstance(wanted, HubRequest):
        assert there.output.is_meta, "logits stay"
        assert there.output.shape == here.output.shape
    assert there.trace.nbytes == 0
    assert there.trace.sites == here.trace.sites
    some = {"head": 1, "queries": slice(1, 3), "keys": slice(0, 2)}
    for call in here.trace:
        other = there.trace[call.site]
        assert torch.equal(other.weights(head=0), call.weights(head=0))
        assert torch.equal(other.weights(**some), call.weights(**some))
        assert torch.equal(other.overview(2), call.overview(2))

    groups, distant = local.groups(wanted, LABELS), remote.groups(wanted, LABELS)
    state = ViewState(groups[0].id, 0, 0)
    names = [f"picture 0 {group.id} {layer}" for group in groups for layer in range(len(group.calls))]
    names += [f"map 0.{groups[0].id}:0.0_0.1:max:words", f"token 0 {groups[0].id} 0 k1", "map 0.none:9.9:mean:tokens"]
    wants = read_requests(*names)
    one, other_view = (decode_view(encode_view(View(maps, WORDS), state, wants=wants)) for maps in (groups, distant))
    assert one.header["parts"] == other_view.header["parts"]
    assert one.header["missing"] == other_view.header["missing"] == names[-1:]
    assert set(names[:-1]) <= one.parts.keys()
    for name, part in one.parts.items():
        assert torch.equal(part, other_view.parts[name]), name
    methods = [method for method, _ in wire.received if method != "rows"]
    assert methods == ["outline", *["parts"] * len(groups)], "what one message asks of a group crosses at once"


def test_maps_of_a_small_group_cross_once(local: LocalRunner, remote: RemoteRunner, wire: Wire) -> None:
    here, there = (runner.groups(CALM, LABELS)[0] for runner in (local, remote))
    encode_view(View((there,), WORDS), ViewState(there.id, 0, 0))
    assert there.is_small
    wire.received.clear()
    for layer, head in here.heads:
        assert torch.equal(there.weights(layer, head), here.weights(layer, head))
        assert torch.equal(here.weights(layer, head), here.calls[layer].weights(head=head)[0])
    there.pictures()
    assert not wire.received
    assert not isinstance(there.parts([MapRequest(((0, 9),))])[0], Part), "there is no such head"


def test_heads_switched_off_elsewhere_are_those_of_the_request(
    local: LocalRunner, remote: RemoteRunner, translator: Translator
) -> None:
    without = replace(CALM, off=(("decoder.1.cross", 1), ("decoder.1.cross", 3), ("encoder.0.self", 0)))
    here, there, plain = local.run(without), remote.run(without), local.run(CALM)
    assert (there.text, there.log_probabilities) == (here.text, here.log_probabilities)
    assert here.log_probability != plain.log_probability
    assert torch.equal(there.trace["decoder.1.cross"].weights(), here.trace["decoder.1.cross"].weights())
    assert [bool(here.trace["decoder.1.cross"].weights(head=h).any()) for h in range(4)] == [True, False, True, False]
    unknown = replace(CALM, off=(("decoder.1.cross", 4),))
    batch = TranslationRequest.run_all(translator, [CALM, unknown, without])
    assert isinstance(batch[1], ValueError)
    assert (batch[0].text, batch[2].text) == (plain.text, here.text)  # type: ignore[union-attr]
    assert "with intervene({'decoder.1.cross': off(1, 3), 'encoder.0.self': off(0)}):" in without.run_source().code


def test_a_second_input_elsewhere_is_asked_for_by_its_own_sentence(local: LocalRunner, remote: RemoteRunner) -> None:
    other, name = TranslationRequest(TINY, "She has a red car."), "map 1.cross:1.3:mean:tokens"
    groups = [remote.groups(request, LABELS) for request in (CALM, other)]
    view = View(groups[0], WORDS, groups[1], ("one", "two"))
    sent = decode_view(encode_view(view, aligning_head(view.groups), wants=read_requests(name))).parts[name]
    assert torch.equal(sent, local.run(other).trace["decoder.1.cross"].weights(head=3)[0])


def test_nothing_large_crosses(remote: RemoteRunner, wire: Wire) -> None:
    """The trace and the logits stay: a first view of a long text takes far less than its maps."""
    sentence = TranslationRequest(TINY, " ".join(["The dog is in the house and the cat is on the bed."] * 12))
    for long in (sentence, lab("gpt2", "The cat sat on the mat. " * 8)):
        wire.received.clear()
        trace = remote.run(long).trace
        for group in remote.groups(long, LABELS):
            for layer in range(len(group.calls)):
                group.picture(layer)
        assert {method for method, _ in wire.received} == {"outline", "parts"}
        whole = sum(4 * call.num_heads * call.num_queries * call.num_keys for call in trace)
        assert sum(size for _, size in wire.received) < whole / 2


VISION = ("classifier", "lab classifier")
FUNCTIONS: list[tuple[str, Callable[..., Any], tuple[Any, ...]]] = [
    ("translator", translation_residuals, ()),
    ("translator", encoder_walk, ()),
    *((name, map_residuals, ()) for name in KINDS[::2]),
    *((name, HubModel.next_words, (-1, 5, 0.7)) for name in ("gpt2", "t5")),
    *((name, heads_measured, ()) for name in VISION),
    *((name, patches_shuffled, (3,)) for name in VISION),
    *((name, token_in_layer, (2, 1, "max", 0.3)) for name in VISION),
    *((name, token_over_patches, (0,)) for name in VISION),
]
OF_MODELS = [
    *((name, function, ()) for name in KINDS[1:3] for function in (read_card, position_schemes)),
    *((name, picture_facts, ()) for name in VISION),
    *((name, patch_positions, ((3, 5),)) for name in VISION),
]


@pytest.mark.parametrize(("name", "function", "arguments"), [*FUNCTIONS, *OF_MODELS])
def test_functions_are_evaluated_beside_the_model(
    local: LocalRunner,
    remote: RemoteRunner,
    wire: Wire,
    name: str,
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
) -> None:
    of_model = (name, function, arguments) in OF_MODELS
    method, subject = ("evaluate_model", REQUESTS[name].model) if of_model else ("evaluate", REQUESTS[name])
    here, there = (getattr(runner, method)(subject, function, *arguments) for runner in (local, remote))
    assert plain(there) == plain(here)
    assert {called for called, _ in wire.received} == {method}


def plain(value: Any) -> Any:
    """A value as numbers and texts that can be compared."""
    if isinstance(value, Tensor):
        return value.tolist()
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return plain(vars(value)) if hasattr(value, "__dict__") else value if isinstance(value, float) else str(value)


def longest(_translator: Translator, translation: Translation) -> int:
    return max(map(len, translation.target_tokens))


def test_a_question_without_a_name_is_refused_wherever_models_are(local: LocalRunner, remote: RemoteRunner) -> None:
    """It could not cross, and what works at home shall work on a pool."""

    def closure(translator: Translator, translation: Translation) -> int:
        return longest(translator, translation)

    namesake = wraps(longest)(lambda *_: 0)  # its name leads to another function
    for runner in (local, remote):
        assert runner.evaluate(CALM, longest) > 0
        for question in (closure, lambda _model, run: run.text, partial(longest), namesake):
            for evaluate, subject in ((runner.evaluate, CALM), (runner.evaluate_model, TINY)):
                with pytest.raises(ValueError, match="top level of a module"):
                    evaluate(subject, question)  # type: ignore[operator]


def test_errors_are_those_of_this_process(local: LocalRunner, remote: RemoteRunner) -> None:
    reads = HubVisionSpec(HubModelSpec("bert", offline=True))
    for runner in (local, remote):
        assert runner.evaluate(CALM, future_leak, step=1) < 1e-5, "a named argument"
        with pytest.raises(TextError, match="nothing to translate yet"):
            runner.run(TranslationRequest(TINY, "  "))
        with pytest.raises(HubError, match="takes a text, not a picture"):
            runner.evaluate_model(reads, picture_facts)
        with pytest.raises(HubError, match="takes a text, not a picture"):
            runner.run(ClassificationRequest(reads, Picture("black", Image.new("RGB", (8, 8)))))


def test_a_run_is_cached_once_and_crosses_once(local: LocalRunner, remote: RemoteRunner, wire: Wire) -> None:
    for runner in (local, remote):
        assert runner.find(CALM) is None
        run = runner.run(CALM)
        assert runner.find(CALM) is run
        assert runner.run(CALM) is run
        runner.groups(CALM, LABELS)
        assert len(runner._cache) == 1
    assert [method for method, _ in wire.received] == ["outline"]


@pytest.mark.parametrize("name", ["classifier", "lab classifier"])
def test_contributions_are_requested_like_weights(local: LocalRunner, remote: RemoteRunner, name: str) -> None:
    wanted = REQUESTS[name]
    carried = ContributionRequest(wanted)
    here, there, weights = local.run(carried), remote.run(carried), local.run(wanted)
    assert here.probabilities == there.probabilities == weights.probabilities
    relevance = remote.evaluate(wanted, label_relevance, here.label)
    assert torch.equal(relevance, local.evaluate(wanted, label_relevance, here.label))
    assert float((relevance - torch.eye(len(relevance))).abs().max()) > 0
    for site in here.trace.sites:
        shares = here.trace[site].weights(head=1)
        assert torch.equal(there.trace[site].weights(head=1), shares)
        torch.testing.assert_close(shares.sum(dim=-1), torch.ones(shares.shape[:-1]))
        assert not torch.allclose(shares, weights.trace[site].weights(head=1), atol=1e-3)


def test_a_picture_is_sent_once(load: Callable[..., Any], local: LocalRunner, remote: RemoteRunner, wire: Wire) -> None:
    """A digest stands for it, but where a machine does not know it yet."""
    picture = Picture("noise", Image.effect_noise((64, 64), 100).convert("RGB"))
    wanted = ClassificationRequest(LAB, picture)
    remote.run(wanted)
    remote.evaluate(wanted, heads_measured)
    remote.groups(wanted, LABELS)[0].picture(1)
    assert len([size for _, size in wire.sent if size > 3 * 64 * 64]) == 1
    newcomer = RemoteRunner(Wire(ModelServer(load, LRUCache(100, 2**24))), LRUCache(100, 2**24))
    assert plain(newcomer.evaluate(wanted, heads_measured)) == plain(remote.evaluate(wanted, heads_measured))
    with pytest.raises(PayloadMissingError):
        local.run(wanted.without_payload)
    run = local.run(wanted)
    assert local.run(wanted.without_payload) is run
    black = Picture("black", Image.new("RGB", (64, 64)))
    assert local.run(ClassificationRequest(LAB, black)).probabilities != run.probabilities


def test_sampling_is_part_of_the_request(local: LocalRunner, remote: RemoteRunner) -> None:
    texts = set()
    for seed in (1, 2):
        drawn = lab("gpt2", "The cat", max_new_tokens=8, sampling=Sampling(1.5, 0, 1.0, seed))
        assert remote.run(drawn).text == local.run(drawn).text
        texts.add(local.run(drawn).text)
    assert len({*texts, local.run(lab("gpt2", "The cat", max_new_tokens=8)).text}) == 3


def test_models_and_limits_are_those_of_the_requested_machine(
    local: LocalRunner, remote: RemoteRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert set(KINDS) <= set(remote.evaluate_model(NoModel(), local_model_names))
    registry = ModelRegistry()
    assert registry(LAB).hub is registry(LAB.hub), "with two interfaces it is loaded once"  # type: ignore[attr-defined]
    assert LAB.affinity == LAB.hub.affinity
    monkeypatch.setenv("ATLAS_MAX_CHARACTERS", "20")
    monkeypatch.setenv("ATLAS_MODEL_MEMORY_MB", "1")
    for runner in (local, remote):
        for texts in (("x" * 21, None), ("x", "x" * 21)):
            with pytest.raises(HubError, match="21 characters; at most 20"):
                runner.run(lab("bert", texts[0], text_pair=texts[1]))
        with pytest.raises(HubError, match="nothing-of-the-kind"):
            runner.load(HubModelSpec("nothing-of-the-kind", offline=True))
        with pytest.raises(HubError):
            runner.load(HubModelSpec("../../etc", folder="../../etc"))
