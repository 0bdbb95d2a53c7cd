"""Lengths of contributions: one scale for the heads of all layers."""

from __future__ import annotations

import torch

from tests.viz_core.maps.test_contribution_shares import encoder_and_trace
from viz_core.maps.contributions import contribution_lengths, contribution_norms


def test_lengths_of_all_heads_and_layers_are_on_one_scale() -> None:
    encoder, trace = encoder_and_trace(num_key_heads=2)
    found = contribution_lengths(trace, encoder)
    norms = {call.site: contribution_norms(call, encoder.blocks[call.layer].attention.W_o) for call in trace}
    units = {site: norms[site].sum() / found[site].weights().sum() for site in trace.sites}
    assert len({round(float(unit), 3) for unit in units.values()}) == 1
    for site, unit in units.items():
        torch.testing.assert_close(found[site].weights() * unit, norms[site], atol=1e-5, rtol=1e-4)
        assert float(found[site].weights().max()) <= 1
    sums = torch.cat([found[site].weights().sum(dim=-1).flatten() for site in trace.sites])
    assert float(sums.std()) > 0.01, "of shares every row's sum is 1"
