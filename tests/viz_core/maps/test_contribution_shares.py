"""Maps of shares: against whole contributions, tile by tile, in our models and in those of Hugging Face."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import nn

from tests.viz_core.hub.families import in_memory, inputs_of, output_of, projection_of
from viz_core.attention import MultiHeadAttention
from viz_core.hub import instrument
from viz_core.maps.contributions import contribution_norms, contribution_shares
from viz_core.models import BlockOptions, Seq2SeqAttentionDecoder, TransformerEncoder
from viz_core.models.anatomy import output_projection
from viz_core.trace import AttentionCall, Trace, intervene, off, record, recording_values


def shares_of(call: AttentionCall, W_o: nn.Linear) -> torch.Tensor:
    norms = contribution_norms(call, W_o)
    return norms / norms.sum(dim=-1, keepdim=True)


def encoder_and_trace(**options: Any) -> tuple[TransformerEncoder, Trace]:
    encoder = TransformerEncoder(20, 16, 24, 4, 2, 0.0, options=BlockOptions(**options)).eval()
    with record(values=True) as trace, torch.no_grad():
        encoder(torch.randint(0, 20, (2, 9)), torch.tensor([9, 6]))
    return encoder, trace


def test_every_map_tile_and_thumbnail_is_one_of_shares() -> None:
    encoder, trace = encoder_and_trace(num_key_heads=2)
    found = contribution_shares(trace, encoder)
    assert found.sites == trace.sites
    for call in trace:
        expected = shares_of(call, encoder.blocks[call.layer].attention.W_o)
        shares = found[call.site]
        torch.testing.assert_close(shares.weights(), expected, atol=1e-6, rtol=1e-5)
        torch.testing.assert_close(shares.weights().sum(dim=-1), torch.ones(2, 4, 9))
        tile = shares.weights(head=2, queries=slice(1, 4), keys=slice(3, 8))
        torch.testing.assert_close(tile, expected[:, 2, 1:4, 3:8], atol=1e-6, rtol=1e-5)
        assert torch.equal(shares.overview(64), shares.weights())
        assert float((expected - call.weights()).abs().max()) > 1e-2, "shares that are weights would prove nothing"


@pytest.mark.parametrize("family", ["gpt2", "bert", "llama", "t5", "bart", "vit"])
def test_projections_of_other_models_are_found_by_their_sites(family: str) -> None:
    model = in_memory(family)
    sites, inputs = instrument(model), inputs_of(model)
    with recording_values(), record() as trace, torch.no_grad():
        output_of(model(**inputs))
    found = contribution_shares(trace, model)
    for site in sites:
        W_o = output_projection(model, site)
        layer = projection_of(copy.deepcopy(model), site)
        weight = layer.weight.T if type(layer).__name__ == "Conv1D" else layer.weight
        assert torch.equal(W_o.weight, weight), site
        own = trace[site]
        rows = own.weights().sum(dim=-1) > 0  # no row of padding alone
        expected = shares_of(own, W_o)[rows]
        torch.testing.assert_close(found[site].weights()[rows], expected, atol=1e-6, rtol=1e-4)


def test_a_head_that_is_off_brings_nothing() -> None:
    encoder = TransformerEncoder(20, 16, 24, 4, 2, 0.0).eval()
    with intervene({"encoder.1.self": off(3)}), record(values=True) as trace, torch.no_grad():
        encoder(torch.randint(0, 20, (1, 5)), None)
    found = contribution_shares(trace, encoder)["encoder.1.self"].weights()
    assert not found[:, 3].any()
    assert found[:, :3].sum() == pytest.approx(15, abs=1e-4)


def test_a_translator_with_additive_attention_shows_the_length_of_each_state_it_reads() -> None:
    """Bahdanau's c_t = sum_j a_tj h_j: a word's share is that of a_tj |h_j|."""
    model = Seq2SeqAttentionDecoder(11, 6, 8, 2)
    states, last = torch.randn(1, 5, 8), torch.randn(2, 1, 8)
    with recording_values(), record() as trace, torch.no_grad():
        model(torch.tensor([[1, 4, 2]]), model.init_state((states, last), torch.tensor([4])))
    added = trace["decoder.0.cross"].weights()[0, 0] * states[0].norm(dim=-1)
    found = contribution_shares(trace, model)["decoder.0.cross"].weights()[0, 0]
    torch.testing.assert_close(found, added / added.sum(dim=-1, keepdim=True))
    assert not found[:, 4].any(), "a padded word adds nothing"


def test_what_cannot_be_told_is_refused() -> None:
    encoder, trace = encoder_and_trace()
    with pytest.raises(ValueError, match="expected one of the model's layers"):
        contribution_shares(trace, MultiHeadAttention(8, 2))
    with record() as bare, torch.no_grad():
        encoder(torch.randint(0, 20, (1, 4)), None)
    with pytest.raises(ValueError, match="values"):
        contribution_shares(bare, encoder)
