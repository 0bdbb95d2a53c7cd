"""Several sentences in one batch: each as if alone, each with its own error, cut into tokens once."""

from __future__ import annotations

from collections import defaultdict

import pytest
import torch

from serving.compute.cache import LRUCache
from serving.requests.models import ShippedTranslator
from serving.requests.shipped import TranslationRequest
from serving.runners.runner import LocalRunner
from viz_core.lessons.transformer.layers import encoder_walk, translation_residuals
from viz_core.pretrained import CheckpointError, TextError, Translation, Translator

LABELS: dict[str, str] = defaultdict(lambda: "a label")
TINY = ShippedTranslator("tiny-en-fr")
CALM = TranslationRequest(TINY, "The dog is in the house.")


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
