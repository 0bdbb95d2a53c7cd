"""Steps of a generation as one map: what one pass over the whole text gives."""

from __future__ import annotations

import pytest
import torch

from tests.viz_core.hub.families import in_memory
from viz_core.hub import instrument
from viz_core.trace import record
from viz_core.view import view


@pytest.mark.parametrize("family", ["gpt2", "llama"])
@torch.no_grad()
def test_a_decoder(family: str) -> None:
    """Two prompts, one padded on the left."""
    model = in_memory(family)
    instrument(model)
    prompt = torch.tensor([[5, 9, 3, 17], [0, 0, 12, 30]])
    inputs = {"input_ids": prompt, "attention_mask": (prompt > 0).long()}
    with record() as trace:
        ids = model.generate(**inputs, max_new_tokens=5, min_new_tokens=5, do_sample=False, pad_token_id=0)
    assert trace.sites[-1] == "decoder.1.self@5"
    mask = torch.cat([inputs["attention_mask"], torch.ones(2, 4, dtype=torch.long)], dim=1)
    positions = (mask.cumsum(dim=-1) - 1).clamp_min(0)
    with record() as whole:
        model(ids[:, :-1], attention_mask=mask, position_ids=positions)
    found = trace.stitched()
    assert found.sites == ("decoder.0.self", "decoder.1.self")
    for call in found:
        expected = whole[call.site]
        assert torch.equal(call.key_mask, expected.key_mask)
        assert torch.equal(call.query_mask, expected.query_mask)
        for row in range(2):
            torch.testing.assert_close(call.text(row).weights(), expected.text(row).weights(), atol=1e-6, rtol=0)
        tile = call.weights(head=2, queries=slice(2, 7, 2), keys=slice(1, 4))
        torch.testing.assert_close(tile, call.weights()[:, 2, 2:7:2, 1:4])
        assert call.weights(queries=-1).shape == (2, 4, 8)
    assert [(len(group.query_tokens), len(group.key_tokens)) for group in view(trace).groups] == [(8, 8)]


@torch.no_grad()
def test_an_encoder_and_a_decoder() -> None:
    model = in_memory("bart")
    instrument(model)
    with record() as trace:
        model.generate(torch.tensor([[5, 9, 3]]), max_new_tokens=4, min_new_tokens=4, do_sample=False, num_beams=1)
    found = trace.stitched()
    sizes = {call.site: (call.num_queries, call.num_keys) for call in found}
    assert sizes["encoder.1.self"] == (3, 3)
    assert sizes["decoder.1.self"] == (4, 4)
    assert sizes["decoder.1.cross"] == (4, 3)
    torch.testing.assert_close(found["decoder.0.cross"].weights().sum(dim=-1), torch.ones(1, 4, 4))


def test_layers_that_share_their_weights_are_no_steps() -> None:
    model = in_memory("albert")
    instrument(model)
    with record() as trace, torch.no_grad():
        model(torch.tensor([[5, 9, 3]]))
    assert trace.stitched().sites == trace.sites == ("encoder.0.self", "encoder.0.self@2", "encoder.0.self@3")
