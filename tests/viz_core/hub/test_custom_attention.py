"""Layers with code of their own, models that rely on their masks: the output stays theirs, and nothing is silent."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import transformers
from torch import nn

from tests.viz_core.hub.in_memory import eager_twin
from tests.viz_core.hub.test_parity import maps_of
from tests.viz_core.hub.tiny_models import CODER, SIZES
from viz_core.hub import instrument, restore
from viz_core.hub.attention import attention_forward
from viz_core.trace import record

WORDS = {"vocab_size": 99, "pad_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 0}
EXPERTS = {"num_experts": 2, "encoder_sparse_step": 2, "decoder_sparse_step": 2}
Make = Callable[[], Any]


def nllb() -> Any:
    return transformers.NllbMoeModel(transformers.NllbMoeConfig(**CODER, **WORDS, **EXPERTS))


def splinter() -> Any:
    return transformers.SplinterModel(transformers.SplinterConfig(**SIZES, vocab_size=99))


def pegasus_x() -> Any:
    return transformers.PegasusXModel(transformers.PegasusXConfig(**CODER, **WORDS, num_global_tokens=4, block_size=8))


def drawn(make: Make) -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = make().eval()
        for weights in model.parameters():
            if weights.dim() > 1:
                nn.init.normal_(weights, std=0.15)
    return model


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize(("make", "hidden"), [(nllb, 0), (splinter, 0), (pegasus_x, 2)])
def test_masks_are_those_that_the_model_relies_on(make: Make, hidden: int, padded: bool) -> None:
    """Written for eager attention alone: no mask does not mean causal here, and numbers are added to scores."""
    model = drawn(make)
    real = torch.arange(8) < torch.tensor([8, 5])[:, None] if padded else torch.ones(2, 8, dtype=torch.bool)
    inputs = {"input_ids": torch.randint(4, 99, (2, 8)).where(real, 0)}
    if padded:
        inputs["attention_mask"] = real.long()
    if model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = torch.randint(4, 99, (2, 6))
    with torch.no_grad():
        expected = eager_twin(model)(**inputs, output_attentions=True)
        missing = "not recorded of PegasusXModel: layers 0 to 1 of encoder.layers: PegasusXGlobalLocalAttention"
        warned = pytest.warns(UserWarning, match=missing)
        with warned if hidden else contextlib.nullcontext():
            named = instrument(model)
        with record() as trace:
            output = model(**inputs).last_hidden_state
        restore(model)
        plain = model(**inputs).last_hidden_state
    rows = real if output.shape[:2] == real.shape else torch.ones(output.shape[:2], dtype=torch.bool)
    torch.testing.assert_close(output[rows], expected.last_hidden_state[rows], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(plain, expected.last_hidden_state, atol=1e-5, rtol=1e-5)
    maps = maps_of(expected, "encoder")
    assert set(named) == set(trace.sites)
    assert len(maps) - len(named) == hidden
    for site in named:
        difference = (trace[site].weights() - maps[site]).abs().amax(dim=(1, 3))
        seen = real if difference.shape == real.shape else torch.ones_like(difference, dtype=torch.bool)
        assert float(difference[seen].max()) < 1e-6, site


# What some models hand over besides queries, keys and values


def test_keys_that_each_query_chose() -> None:
    """DeepSeek V3.2's indexer: two of four keys for each of three queries."""
    query, key = torch.randn(1, 2, 3, 8), torch.randn(1, 2, 4, 8)
    indices = torch.tensor([[[0, 2], [1, 2], [3, 0]]])
    mask = torch.tensor([[1, 0, 1, 0], [0, 1, 1, 0], [1, 0, 0, 1]]).bool()
    with record() as trace:
        output, _ = attention_forward(nn.Identity(), query, key, key, mask.new_ones(1, 1, 3, 4), indices=indices)
    expected = F.scaled_dot_product_attention(query, key, key, attn_mask=mask)
    torch.testing.assert_close(output.transpose(1, 2), expected)
    assert torch.equal(trace["attention.0"].weights()[0, 0] > 0, mask)


def test_a_sink_for_each_query() -> None:
    """Inkling 2: eager attention adds a column of scores to the softmax and drops it again."""
    query, key = torch.randn(2, 2, 3, 8), torch.randn(2, 2, 3, 8)
    bias, sinks = torch.randn(2, 2, 3, 3), torch.randn(2, 2, 3, 1)
    with record() as trace:
        output, _ = attention_forward(
            nn.Identity(), query, key, key, torch.ones(1, 1, 3, 3).bool(), scaling=0.5, position_bias=bias, sinks=sinks
        )
    weights = torch.cat([query @ key.mT * 0.5 + bias, sinks], dim=-1).softmax(dim=-1)
    torch.testing.assert_close(output.transpose(1, 2), weights[..., :-1] @ key)
    torch.testing.assert_close(trace["attention.0"].weights(), weights.roll(1, dims=-1))


def test_blocks_of_keys_are_refused() -> None:
    X = torch.randn(1, 1, 2, 4)
    with pytest.raises(ValueError, match="Identity: expected attention to all keys, got blocks chosen for each query"):
        attention_forward(nn.Identity(), X, X, X, None, block_indices=torch.zeros(1, 1, 2, 1))
