"""One way to ask a translator, here or elsewhere: the same answers, and no trace on the way."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
import torch

from benchmarks.view_bytes import decode_view
from serving.compute.cache import LRUCache
from serving.requests.models import ShippedTranslator
from serving.requests.shipped import TranslationRequest
from serving.runners.remote import ModelServer, RemoteRunner
from serving.runners.runner import LocalRunner
from tests.serving.runners.wire import Wire
from tests.viz_core.view.attention_groups import read_requests
from viz_core.lessons.transformer.layers import encoder_walk, future_leak, translation_residuals
from viz_core.models.anatomy import Step
from viz_core.pretrained import CheckpointError, TextError, Translation, Translator
from viz_core.view.components import WORD_NAMES
from viz_core.view.payload import View, encode_view
from viz_core.view.shipped import aligning_head

TINY = ShippedTranslator("tiny-en-fr")
CALM = TranslationRequest(TINY, "The dog is in the house.")
LABELS: dict[str, str] = defaultdict(lambda: "a label")


@pytest.fixture
def local(translator: Translator) -> LocalRunner:
    return LocalRunner(lambda _model: translator, LRUCache(100, 2**24))


@pytest.fixture
def wire(translator: Translator) -> Wire:
    return Wire(ModelServer(lambda _model: translator, LRUCache(100, 2**24)))


def test_a_translation_from_elsewhere_is_the_same_and_so_is_every_weight(
    local: LocalRunner, remote: RemoteRunner
) -> None:
    here, there = local.run(CALM), remote.run(CALM)
    assert (there.text, there.target_ids, there.source_tokens) == (here.text, here.target_ids, here.source_tokens)
    assert there.trace.sites == here.trace.sites
    assert there.trace.nbytes == 0
    for site in here.trace.sites:
        assert torch.equal(there.trace[site].weights(), here.trace[site].weights())
        tile = {"head": 1, "queries": slice(1, 3), "keys": slice(0, 2)}
        assert torch.equal(there.trace[site].weights(**tile), here.trace[site].weights(**tile))
        assert torch.equal(there.trace[site].overview(2), here.trace[site].overview(2))


def test_the_view_of_maps_elsewhere_is_byte_for_byte_that_of_maps_here(
    local: LocalRunner, remote: RemoteRunner, wire: Wire
) -> None:
    words = dict.fromkeys(WORD_NAMES, "a word")
    here, there = local.groups(CALM, LABELS), remote.groups(CALM, LABELS)
    state = aligning_head(here)
    assert aligning_head(there) == state
    wants = ["map 0.cross:0.1_1.2:max:words", "tile 0.cross:0.0:mean:tokens 0 0 0 0"]
    wants += ["token 0 cross 1 q0", "token 0 cross 0 k1", "picture 0 encoder-self 1", "map 0.cross:9.9:mean:tokens"]
    one = decode_view(encode_view(View(here, words), state, wants=read_requests(*wants)))
    other = decode_view(encode_view(View(there, words), state, wants=read_requests(*wants)))
    assert one.parts.keys() == other.parts.keys()
    assert len(one.parts) > len(wants)
    for name, part in one.parts.items():
        assert torch.equal(part, other.parts[name]), name
    assert one.header["parts"] == other.header["parts"]
    assert [question for question, _ in wire.received].count("parts") == 1, "what one message asks crosses at once"
    assert one.header["missing"] == other.header["missing"] == ["map 0.cross:9.9:mean:tokens"]


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
    words = dict.fromkeys(WORD_NAMES, "a word")
    other = TranslationRequest(TINY, "She has a red car.")
    view = View(
        remote.groups(CALM, LABELS),
        words,
        remote.groups(other, LABELS),
        ("one", "two"),
    )
    name = "map 1.cross:1.3:mean:tokens"
    sent = decode_view(encode_view(view, aligning_head(view.groups), wants=read_requests(name))).parts[name]
    assert torch.equal(sent, local.run(other).trace["decoder.1.cross"].weights(head=3)[0])


def test_nothing_large_crosses(local: LocalRunner, remote: RemoteRunner, wire: Wire) -> None:
    """The trace stays: what crosses for a first view of a long sentence is far less than its maps."""
    long = TranslationRequest(TINY, " ".join(["The dog is in the house and the cat is on the bed."] * 12))
    groups = remote.groups(long, LABELS)
    for group in groups:
        for layer in range(len(group.calls)):
            group.picture(layer)
    trace = local.run(long).trace
    whole = sum(4 * call.num_heads * call.num_queries * call.num_keys for call in trace)
    assert {question for question, _ in wire.received} == {"outline", "picture"}
    assert sum(size for _, size in wire.received) < whole / 4


@pytest.mark.parametrize("question", [translation_residuals, encoder_walk])
def test_questions_are_answered_beside_the_model(
    local: LocalRunner, remote: RemoteRunner, wire: Wire, question: Callable[[Translator, Translation], Any]
) -> None:
    torch.testing.assert_close(plain(remote.evaluate(CALM, question)), plain(local.evaluate(CALM, question)))
    assert [question for question, _ in wire.received] == ["evaluate"]


def test_a_question_may_have_named_arguments(local: LocalRunner, remote: RemoteRunner) -> None:
    for runner in (local, remote):
        assert runner.evaluate(CALM, future_leak, step=1) == runner.evaluate(CALM, future_leak, 1) < 1e-5


def longest(_translator: Translator, translation: Translation) -> int:
    return max(map(len, translation.target_tokens))


def test_a_question_without_a_name_is_refused_wherever_models_are(local: LocalRunner, remote: RemoteRunner) -> None:
    """It could not cross, and what works at home shall work on a pool."""

    def closure(translator: Translator, translation: Translation) -> int:
        return longest(translator, translation)

    nameless = [closure, lambda _model, run: run.text, partial(longest)]
    for runner in (local, remote):
        assert runner.evaluate(CALM, longest) > 0
        for question in nameless:
            with pytest.raises(ValueError, match="top level of a module"):
                runner.evaluate(CALM, question)  # type: ignore[arg-type]
            with pytest.raises(ValueError, match="top level of a module"):
                runner.evaluate_model(TINY, question)  # type: ignore[arg-type]


def plain(answer: object) -> object:
    """The answer as what `assert_close` compares: steps as their outputs."""
    if isinstance(answer, Step):
        return answer.output
    return [plain(part) for part in answer] if isinstance(answer, tuple) else answer


def test_what_is_wrong_with_a_text_is_told_as_it_is_here(remote: RemoteRunner) -> None:
    with pytest.raises(TextError, match="nothing to translate yet"):
        remote.run(TranslationRequest(TINY, "  "))


def test_several_sentences_in_one_batch_become_what_each_becomes_alone(translator: Translator) -> None:
    texts = ["Go.", "She has a red car.", "Go.", "Where is the cat?", "I don't know."]
    sentences = [TranslationRequest(TINY, text) for text in texts]
    together = LocalRunner(lambda _model: translator, LRUCache(100, 2**24)).run_all(sentences)
    for text, made in zip(texts, together, strict=True):
        assert isinstance(made, Translation)
        alone = translator.translate(text)
        assert (made.text, made.target_ids, made.complete) == (alone.text, alone.target_ids, alone.complete)
        assert made.log_probability == pytest.approx(alone.log_probability, abs=1e-6)
        for call in alone.trace:
            torch.testing.assert_close(made.trace[call.site].weights(), call.weights(), rtol=0, atol=1e-6)


def test_a_batch_may_mix_models_and_beams(translator: Translator) -> None:
    sentences = [TranslationRequest(ShippedTranslator(model), "Go.", beam) for model in ("a", "b") for beam in (1, 4)]
    made = LocalRunner(lambda _model: translator, LRUCache(100, 2**24)).run_all(sentences)
    alone = [translator.translate("Go.", beam=one.beam).text for one in sentences]
    assert [one.text for one in made if isinstance(one, Translation)] == alone


def test_one_bad_text_spoils_no_batch(local: LocalRunner) -> None:
    good, bad = TranslationRequest(TINY, "Go."), TranslationRequest(TINY, "  ")
    made = local.run_all([good, bad, good])
    assert isinstance(made[1], TextError)
    assert made[0] is made[2]
    assert isinstance(made[0], Translation)
    assert made[0].text == local.run(good).text


def test_a_model_that_is_not_there_spoils_no_batch_of_others(translator: Translator) -> None:
    def load(model: ShippedTranslator) -> Translator:
        if model != TINY:
            raise CheckpointError(f"There is no model {model.name!r}")
        return translator

    local = LocalRunner(load, LRUCache(100, 2**24))
    made = local.run_all([TranslationRequest(ShippedTranslator("nothing"), "Go."), TranslationRequest(TINY, "Go.")])
    assert isinstance(made[0], CheckpointError)
    assert isinstance(made[1], Translation)
    with pytest.raises(CheckpointError, match="no model 'nothing'"):
        local.run(TranslationRequest(ShippedTranslator("nothing"), "Go."))


def test_a_run_is_kept_once_and_found_again(local: LocalRunner, remote: RemoteRunner) -> None:
    for runner in (local, remote):
        assert runner.find(CALM) is None
        run = runner.run(CALM)
        assert runner.find(CALM) is run
        assert runner.run(CALM) is run
        runner.evaluate(CALM, longest)
        runner.groups(CALM, LABELS)
        assert len(runner._cache) == 1


def test_what_was_run_crosses_once(remote: RemoteRunner, wire: Wire) -> None:
    remote.run(CALM)
    remote.run(CALM)
    remote.groups(CALM, LABELS)
    assert [question for question, _ in wire.received] == ["outline"]


def test_a_sentence_is_cut_into_tokens_once(
    translator: Translator, local: LocalRunner, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is asked about it: the translation, alone or in a batch, its maps, its claims, its steps."""
    encode, cut = translator.tokenizer.encode, list[str]()
    monkeypatch.setattr(translator.tokenizer, "encode", lambda text: cut.append(text) or encode(text))
    local.run_all([CALM, TranslationRequest(TINY, "Go."), TranslationRequest(TINY, " "), CALM])
    for one in (CALM, TranslationRequest(TINY, "She has a red car.", 4)):
        local.run(one)
        local.groups(one, LABELS)
        for question in (translation_residuals, encoder_walk):
            local.evaluate(one, question)
    assert cut == ["The dog is in the house.", "Go.", "She has a red car."]
