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
from serving.requests.request import TONES, PayloadMissingError, Picture, RunRequest, SoundInput
from serving.requests.shipped import ClassificationRequest, TranslationRequest
from serving.runners.remote import ModelServer, RemoteRunner
from serving.runners.runner import LocalRunner
from tests.serving.runners.worker_functions import Wire
from tests.viz_core.hub.families import build_all
from tests.viz_core.images.hostile_pictures import quarters
from tests.viz_core.view.attention_groups import read_requests
from viz_core.hub import HubError, HubModel
from viz_core.hub.runs.run import RunInputs
from viz_core.lab.pictures import heads_measured, patch_positions, token_in_layer
from viz_core.lab.runs import map_residuals, read_card
from viz_core.lessons.transformer.layers import translation_residuals
from viz_core.lessons.vision_transformer import patches_shuffled
from viz_core.pretrained import Translation, Translator
from viz_core.pretrained.samples import GARMENTS, drawn_picture
from viz_core.sounds.sound import tone_sequence
from viz_core.view.components import WORD_NAMES
from viz_core.view.payload import View, encode_view
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


@pytest.mark.parametrize("wanted", REQUESTS.values(), ids=list(REQUESTS))
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


FUNCTIONS: list[tuple[str, str, Callable[..., Any], tuple[Any, ...]]] = [
    ("evaluate", "translator", translation_residuals, ()),
    ("evaluate", "whisper", map_residuals, ()),
    ("evaluate", "t5", HubModel.next_words, (-1, 5, 0.7)),
    ("evaluate", "lab classifier", patches_shuffled, (3,)),
    ("evaluate", "classifier", token_in_layer, (2, 1, "max", 0.3)),
    ("evaluate_model", "gpt2", read_card, ()),
    ("evaluate_model", "lab classifier", patch_positions, ((3, 5),)),
]


@pytest.mark.parametrize(("method", "name", "function", "arguments"), FUNCTIONS)
def test_functions_are_evaluated_beside_the_model(
    local: LocalRunner,
    remote: RemoteRunner,
    wire: Wire,
    method: str,
    name: str,
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
) -> None:
    subject = REQUESTS[name] if method == "evaluate" else REQUESTS[name].model
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


def test_a_run_is_cached_once_and_crosses_once(local: LocalRunner, remote: RemoteRunner, wire: Wire) -> None:
    for runner in (local, remote):
        assert runner.find(CALM) is None
        run = runner.run(CALM)
        assert runner.find(CALM) is run
        assert runner.run(CALM) is run
        runner.groups(CALM, LABELS)
        assert len(runner._cache) == 1
    assert [method for method, _ in wire.received] == ["outline"]


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


def test_models_and_limits_are_those_of_the_requested_machine(
    local: LocalRunner, remote: RemoteRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert set(KINDS) <= set(remote.evaluate_model(NoModel(), local_model_names))
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
