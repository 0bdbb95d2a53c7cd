"""Steps of the attention decoder against its recorded pass, and the plain decoder's bottleneck."""

from dataclasses import replace

import pytest
import torch

from viz_core.lessons.bahdanau.decoder_steps import decoder_steps, erased_error, weights_by_formula
from viz_core.pretrained import Translator, build_translation_model

SIZES = {"embed_size": 12, "num_hiddens": 12, "num_layers": 2, "dropout": 0.0}


def recurrent(translator: Translator, architecture: str) -> Translator:
    """An untrained recurrent model behind the tiny Transformer's tokenizer."""
    vocab_size = translator.tokenizer.get_vocab_size()
    with torch.random.fork_rng():
        torch.manual_seed(2)
        model = build_translation_model({"architecture": architecture, "vocab_size": vocab_size, **SIZES})
        for parameter in model.parameters():
            torch.nn.init.normal_(parameter, std=0.7)  # far from uniform weights
    return Translator(translator.card, model.eval().requires_grad_(False), translator.tokenizer, translator.device)


@pytest.fixture(scope="module")
def attends(translator: Translator) -> Translator:
    return recurrent(translator, "seq2seq-attention")


@pytest.fixture(scope="module")
def plain(translator: Translator) -> Translator:
    return recurrent(translator, "seq2seq")


@pytest.mark.parametrize("architecture", ["seq2seq-attention", "rnnsearch"])
def test_steps_are_those_of_the_recorded_pass(architecture: str, translator: Translator) -> None:
    attends = recurrent(translator, architecture)
    result = attends.translate("Where is the cat?", max_new_tokens=7)
    steps = decoder_steps(attends, result)
    recorded = result.trace["decoder.0.cross"].weights(head=0)[0]
    torch.testing.assert_close(steps.weights, recorded, atol=1e-6, rtol=0)
    assert float((recorded.max(dim=-1).values - 1 / recorded.shape[1]).min()) > 0.02  # not uniform: the test can fail
    assert weights_by_formula(attends, result, steps)[1] < 1e-5


def test_queries_contexts_and_choices_follow_from_the_states(attends: Translator) -> None:
    result = attends.translate("Where is the cat?", max_new_tokens=5)
    steps = decoder_steps(attends, result)
    source = torch.tensor([result.source_ids])
    outputs, hidden_state = attends.model.encoder(source)
    torch.testing.assert_close(steps.queries[0], hidden_state[-1, 0])  # the first to ask is the encoder's last state
    torch.testing.assert_close(steps.contexts, steps.weights @ outputs[0], atol=1e-6, rtol=0)
    torch.testing.assert_close(steps.probabilities.sum(dim=-1), torch.ones(len(result.target_ids)))
    chosen = steps.probabilities[range(len(result.target_ids)), list(result.target_ids)]
    assert float(chosen.log().sum()) == pytest.approx(result.log_probability, abs=1e-3)
    target = torch.tensor([[attends.special.bos, *result.target_ids[:-1]]])
    states, _ = attends.model.decoder.hidden(target, attends.model.decoder.init_state((outputs, hidden_state)))
    torch.testing.assert_close(steps.queries[1:], states[0, :-1], atol=1e-6, rtol=0)


def test_the_likeliest_words_come_in_order(attends: Translator) -> None:
    steps = decoder_steps(attends, attends.translate("Go.", max_new_tokens=2))
    likeliest = steps.likeliest(0, 4)
    assert len(likeliest) == 4
    assert [p for _, p in likeliest] == sorted((p for _, p in likeliest), reverse=True)
    assert likeliest[0][0] == int(steps.probabilities[0].argmax())
    assert len(steps.likeliest(0, 10**6)) == attends.tokenizer.get_vocab_size()


def test_the_residual_is_that_of_the_formula_pair_by_pair(attends: Translator) -> None:
    result = attends.translate("Where is the cat?", max_new_tokens=5)
    steps = decoder_steps(attends, result)
    another = replace(steps, queries=steps.queries + 0.5)  # a residual well above rounding
    attention = attends.model.decoder.attention
    W_q, W_k, w_v = (layer.weight.double() for layer in (attention.W_q, attention.W_k, attention.w_v))
    keys = attends.model.encoder(torch.tensor([result.source_ids])).outputs[0].double()
    recorded = result.trace["decoder.0.cross"].weights(head=0)[0].double()
    worst = 0.0
    for t, query in enumerate(another.queries.double()):
        scores = torch.stack([w_v[0] @ torch.tanh(W_q @ query + W_k @ key) for key in keys])
        worst = max(worst, float((recorded[t] - scores.softmax(dim=0)).abs().max()))
    assert weights_by_formula(attends, result, another)[1] == pytest.approx(worst, rel=1e-9)


def test_the_plain_decoder_has_a_bottleneck_and_the_other_has_not(plain: Translator, attends: Translator) -> None:
    result = plain.translate("Where is the cat?", max_new_tokens=5)
    assert result.trace.sites == ()
    assert erased_error(plain, result) == 0.0
    assert erased_error(attends, attends.translate("Where is the cat?", max_new_tokens=5)) > 1e-3
    with pytest.raises(ValueError, match="with additive attention, got Seq2SeqDecoder"):
        decoder_steps(plain, result)
