"""What crew, batches and serialisation promise to those who run models in processes."""

import pickle
from collections import defaultdict
from concurrent.futures import Future
from dataclasses import dataclass

import pytest
import torch
from torch import nn

from serving.compute.cache import LRUCache
from serving.requests.models import ShippedTranslator
from serving.requests.shipped import TranslationRequest
from serving.runners.crew import LONG, Crew, Task
from serving.runners.runner import LocalRunner
from serving.runners.worker import Call, pack
from viz_core.lessons.transformer.layers import encoder_walk, translation_residuals
from viz_core.pretrained import CheckpointError, TextError, Translation, Translator

LABELS: dict[str, str] = defaultdict(lambda: "a label")
TINY = ShippedTranslator("tiny-en-fr")
CALM = TranslationRequest(TINY, "The dog is in the house.")


def test_several_sentences_in_one_batch_become_what_each_becomes_alone(translator: Translator) -> None:
    """Also of several models, and with several beams."""
    sentences = [TranslationRequest(TINY, text) for text in ("Go.", "She has a red car.", "Go.", "Where is the cat?")]
    sentences += [TranslationRequest(ShippedTranslator(model), "Go.", beam) for model in "ab" for beam in (1, 4)]
    together = LocalRunner(lambda _model: translator, LRUCache(100, 2**24)).run_all(sentences)
    for one, made in zip(sentences, together, strict=True):
        assert isinstance(made, Translation)
        alone = translator.translate(one.text, beam=one.beam)
        assert (made.text, made.target_ids, made.complete) == (alone.text, alone.target_ids, alone.complete)
        assert made.log_probability == pytest.approx(alone.log_probability, abs=1e-6)
        for call in alone.trace:
            torch.testing.assert_close(made.trace[call.site].weights(), call.weights(), rtol=0, atol=1e-6)


def test_a_sentence_is_cut_into_tokens_once(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is asked about it: the translation, alone or in a batch, its maps, its claims, its steps."""
    local = LocalRunner(lambda _model: translator, LRUCache(100, 2**24))
    encode, cut = translator.tokenizer.encode, list[str]()
    monkeypatch.setattr(translator.tokenizer, "encode", lambda text: cut.append(text) or encode(text))
    local.run_all([CALM, TranslationRequest(TINY, "Go."), TranslationRequest(TINY, " "), CALM])
    for one in (CALM, TranslationRequest(TINY, "She has a red car.", 4)):
        local.run(one)
        local.groups(one, LABELS)
        for question in (translation_residuals, encoder_walk):
            local.evaluate(one, question)
    assert cut == ["The dog is in the house.", "Go.", "She has a red car."]


def test_a_bad_text_or_a_missing_model_spoils_no_batch(translator: Translator) -> None:
    def load(model: ShippedTranslator) -> Translator:
        if model != TINY:
            raise CheckpointError(f"There is no model {model.name!r}")
        return translator

    local = LocalRunner(load, LRUCache(100, 2**24))
    good = TranslationRequest(TINY, "Go.")
    missing = TranslationRequest(ShippedTranslator("nothing"), "Go.")
    made = local.run_all([good, TranslationRequest(TINY, "  "), missing, good])
    assert isinstance(made[0], Translation)
    assert made[0] is made[3] is local.run(good)
    assert isinstance(made[1], TextError)
    assert isinstance(made[2], CheckpointError)
    with pytest.raises(CheckpointError, match="no model 'nothing'"):
        local.run(missing)


@dataclass(eq=False)
class Bell:
    """A worker that counts how often it was woken."""

    rung: int = 0

    def wake(self) -> None:
        self.rung += 1


def task(address: str | None, subject: str = "short", function: object = None) -> Task:
    return Task(Call("evaluate", subject, (function or task,)), Future(), address)


def crew_of(count: int) -> tuple[Crew, list[Bell]]:
    crew, bells = Crew(), [Bell() for _ in range(count)]
    crew.members.extend(bells)
    return crew, bells


def test_what_took_long_is_expected_to_take_long_whoever_asks() -> None:
    crew, (one, _) = crew_of(2)
    quick, slow, large = task("a"), task("a", function=crew_of), task("a", "x" * 2000)
    assert [crew.is_long(each) for each in (quick, slow, large)] == [False, False, True]
    crew.end(one, [quick], LONG / 10)
    crew.end(one, [slow], 20 * LONG)
    crew.end(one, [large], LONG / 2)
    assert [crew.is_long(each) for each in (quick, slow, large)] == [False, True, False]
    assert crew.is_long(task("b", function=crew_of))


@pytest.mark.parametrize("count", [1, 2, 3])
def test_long_work_of_an_address_leaves_one_worker_free(count: int) -> None:
    crew, workers = crew_of(count)
    large = "x" * 2000
    for worker in workers[: max(1, count - 1)]:
        assert crew.may_run(worker, task("crowd", large))
        crew.begin(worker, [task("crowd", large)])
    last = workers[-1]
    assert crew.may_run(last, task("crowd", large)) is (count == 1)
    assert crew.may_run(last, task("crowd"))
    assert crew.may_run(last, task("newcomer", large))
    assert crew.may_run(last, task(None, large)), "this machine's own work"
    assert crew.free_for(workers[0], "newcomer") is last
    assert crew.free_for(workers[0], "crowd") is workers[0]
    crew.end(workers[0], [task("crowd", large)], LONG)
    assert all(worker.rung == 1 for worker in workers)
    assert crew.may_run(last, task("crowd", large))


BASE = torch.arange(24.0).reshape(2, 3, 4)
TENSORS = {
    "float32": BASE,
    "bfloat16": BASE.bfloat16(),
    "bool": BASE > 5,
    "not finite": torch.tensor([float("nan"), float("inf"), -float("inf"), -0.0]),
    "empty": torch.zeros(0, 4),
    "every other column": BASE[..., ::2],
    "expanded": torch.ones(1, 4).expand(3, 4),
    "conjugated": torch.complex(BASE, -BASE).conj(),
}


@pytest.mark.parametrize("name", TENSORS)
def test_a_tensor_comes_back(name: str) -> None:
    sent = TENSORS[name]
    found = pickle.loads(pack({"maps": [sent, 7], "more": (sent,)}))
    for came in (found["maps"][0], found["more"][0]):
        assert came.dtype == sent.dtype
        torch.testing.assert_close(came, sent.resolve_conj(), rtol=0, atol=0, equal_nan=True)
    assert found["maps"][1] == 7


def test_a_tensor_can_be_written_to_a_parameter_stays_one_and_a_view_is_small() -> None:
    found = pickle.loads(pack(BASE))
    found += 1
    assert torch.equal(found, BASE + 1)
    assert isinstance(pickle.loads(pack(nn.Parameter(BASE))), nn.Parameter)
    assert len(pack(torch.zeros(1000, 1000)[0])) < 5_000
