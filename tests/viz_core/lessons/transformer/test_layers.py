"""Residuals of a translation, and a decoder without its causal mask."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from viz_core.attention import MultiHeadAttention
from viz_core.lessons.transformer import layers as claims
from viz_core.lessons.transformer.layers import encoder_shapes, saved_tensors, unmasked_logits
from viz_core.maps.fingerprints import row_sum_error
from viz_core.models.transformer import BlockOptions, TransformerEncoder
from viz_core.models.transformer_decoder import TransformerDecoder
from viz_core.positional import PositionalEncoding
from viz_core.pretrained import Translation, Translator
from viz_core.trace import record, record_weights

SENTENCE = "The dog is in the house."


@pytest.fixture(scope="module")
def translation(translator: Translator) -> Translation:
    return translator.translate(SENTENCE, max_new_tokens=8)


def remove_causal_mask(monkeypatch: pytest.MonkeyPatch) -> None:
    """From here on no attention is causal."""
    attend_to = MultiHeadAttention.attend_to

    def to_all(self: MultiHeadAttention, *args: Any, causal: bool = False, **others: Any) -> Tensor:
        return attend_to(self, *args, **others)

    monkeypatch.setattr(MultiHeadAttention, "attend_to", to_all)


def test_all_hold_for_a_sound_model(translator: Translator, translation: Translation) -> None:
    assert row_sum_error(translation.trace) < 1e-5
    for call in translation.trace:
        if call.site.startswith("decoder") and call.kind == "self":
            assert claims.future_weight(call) == 0.0
    for step in range(len(translation.target_ids)):
        assert claims.future_leak(translator, translation, step) < 1e-5
    assert claims.translation_residuals(translator, translation)["cache"] == translation.cache_error < 1e-4
    encoder = translator.model.encoder
    assert claims.encoder_walk(translator, translation)[1]["walk"] < 1e-5
    assert claims.position_wise_error(encoder) < 1e-6


def test_future_weight_is_the_largest_above_the_diagonal() -> None:
    with record() as trace:
        record_weights(torch.tensor([[[[0.4, 0.35, 0.25], [0.2, 0.5, 0.3], [0.9, 0.05, 0.05]]]]))
        # two queries over three keys: the first query's newest step is key 1
        record_weights(torch.tensor([[[[0.5, 0.25, 0.25], [0.1, 0.1, 0.8]]]]))
    assert claims.future_weight(trace["attention.0"]) == pytest.approx(0.35)
    assert claims.future_weight(trace["attention.1"]) == pytest.approx(0.25)


def test_long_maps_are_held_to_their_last_rows_and_to_the_first_ones_future() -> None:
    with record() as trace:
        record_weights(torch.tensor([[[[0.5, 0.25], [0.5, 0.5]]]]))
        record_weights(torch.tensor([[[[0.9, 0.1, 0.0], [0.1, 0.1, 0.8], [0.0, 0.0, 1.0]]]]))
    assert row_sum_error(trace) == pytest.approx(0.25)
    assert row_sum_error(trace, most=1) == 0.0
    assert claims.future_weight(trace["attention.1"]) == pytest.approx(0.8)
    assert claims.future_weight(trace["attention.1"], most=1) == pytest.approx(0.1)


def test_a_model_that_looks_ahead_is_noticed(translator: Translator, monkeypatch: pytest.MonkeyPatch) -> None:
    remove_causal_mask(monkeypatch)
    translation = translator.translate(SENTENCE, max_new_tokens=8)
    assert claims.future_weight(translation.trace["decoder.0.self"]) > 1e-3
    assert claims.future_leak(translator, translation, len(translation.target_ids) - 1) > 1e-3
    assert translation.cache_error > 1e-3


def test_a_change_at_the_first_step_has_nothing_before_it(translator: Translator, translation: Translation) -> None:
    assert claims.future_leak(translator, translation, 0) == 0.0


@pytest.mark.parametrize("beam", [1, 3])
def test_a_cache_that_forgets_its_place_is_noticed(
    translator: Translator, monkeypatch: pytest.MonkeyPatch, beam: int
) -> None:
    forward = PositionalEncoding.forward

    def from_the_start(self: PositionalEncoding, X: Tensor, offset: int = 0) -> Tensor:
        return forward(self, X)

    monkeypatch.setattr(PositionalEncoding, "forward", from_the_start)
    broken = translator.translate(SENTENCE, max_new_tokens=8, beam=beam)
    assert claims.translation_residuals(translator, broken)["cache"] > 1e-3


def test_a_shortcut_past_the_shown_steps_is_noticed(translator: Translator, translation: Translation) -> None:
    model = copy.deepcopy(translator.model)
    model.encoder.register_forward_hook(lambda _, __, output: output * 1.01)
    broken = dataclasses.replace(translator, model=model)
    assert claims.encoder_walk(broken, translation)[1]["walk"] > 1e-3


def test_a_net_that_tells_positions_apart_is_noticed(translator: Translator) -> None:
    encoder = copy.deepcopy(translator.model.encoder)

    class Positioned(nn.Module):
        def forward(self, X: Tensor) -> Tensor:
            return X + torch.arange(X.shape[1])[:, None]

    encoder.blocks[0].ffn = Positioned()
    assert claims.position_wise_error(encoder, num_positions=5) == pytest.approx(4.0)


def test_the_books_shapes() -> None:
    assert encoder_shapes() == {"block": (2, 100, 24), "encoder": (2, 100, 24)}


@pytest.mark.parametrize("norm_first", [False, True])
def test_without_its_mask_a_decoder_reads_ahead(norm_first: bool) -> None:
    torch.manual_seed(0)
    encoder = TransformerEncoder(9, 16, 32, 2, 2, 0.0).eval()
    decoder = TransformerDecoder(9, 16, 32, 2, 2, 0.0, options=BlockOptions(norm_first=norm_first)).eval()
    with torch.inference_mode():
        memory = encoder(torch.tensor([[1, 2, 3]]))
        one = torch.tensor([[4]])  # a single step has no future: masked or not is the same
        causal = decoder(one, decoder.init_state(memory))[0]
        torch.testing.assert_close(unmasked_logits(decoder, one, memory, None), causal)
        first, second = (unmasked_logits(decoder, torch.tensor([[4, word]]), memory, None) for word in (5, 6))
        assert float((first - second)[:, 0].abs().max()) > 1e-3
    assert saved_tensors(encoder) == saved_tensors(decoder) == 0
    decoder.map = torch.zeros(1)
    assert saved_tensors(decoder) == 1
