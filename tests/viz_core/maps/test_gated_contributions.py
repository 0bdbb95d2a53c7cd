"""Contributions of layers that change what their heads write before it is projected: with the gate, or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn

import viz_core.hub.attention
from tests.viz_core.hub.families import in_memory, inputs_of
from viz_core.hub import instrument, restore
from viz_core.maps.contributions import (
    contribution_norms,
    contribution_shares,
    contribution_sum,
    contribution_vectors,
)
from viz_core.models.anatomy import output_projection
from viz_core.trace import AttentionCall, gate, intervene, load_trace, record, save_trace

SIZES = {"vocab_size": 20, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "head_dim": 8}
GROUPED = {**SIZES, "num_key_value_heads": 2}
GATED: dict[str, dict[str, Any]] = {
    "qwen3_next": {
        **GROUPED,
        **{"num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 4},
        **{"shared_expert_intermediate_size": 4, "layer_types": ["full_attention"]},
    },
    "qwen3_5_text": {**GROUPED, "intermediate_size": 48, "layer_types": ["full_attention"]},
    "hrm_text": {**SIZES, "intermediate_size": 48},
}

pytestmark = pytest.mark.filterwarnings("ignore:instrument")


def ran(family: str, sizes: dict[str, Any], edits: dict[str, Any] | None = None) -> tuple[Any, AttentionCall, Tensor]:
    """A random model, its call, and what its output projection gave without its bias."""
    torch.manual_seed(4)
    model = transformers.AutoModel.from_config(transformers.CONFIG_MAPPING[family](**sizes)).eval()
    for weights in model.parameters():
        if weights.dim() > 1:
            nn.init.normal_(weights, std=0.3)
    (site, *_), outputs = instrument(model), list[Tensor]()
    W_o = output_projection(model, site)
    assert W_o.bias is None
    W_o.register_forward_hook(lambda _layer, _inputs, output: outputs.append(output))
    with torch.no_grad(), record(values=True) as trace, intervene(edits or {}):
        model(torch.randint(3, 20, (2, 5)))
    return model, trace[site], outputs[0]


@pytest.mark.parametrize("family", GATED)
def test_a_gate_is_part_of_every_contribution(family: str, tmp_path: Path) -> None:
    model, call, output = ran(family, GATED[family])
    W_o = output_projection(model, call.site)
    assert call.source.gate is not None
    torch.testing.assert_close(contribution_sum(call, W_o), output, atol=1e-5, rtol=0)
    by_head = torch.stack([contribution_vectors(call, W_o, 3, head) for head in range(4)], dim=1)
    torch.testing.assert_close(contribution_norms(call, W_o)[:, :, 3], by_head.norm(dim=-1), atol=1e-5, rtol=0)
    torch.testing.assert_close(contribution_sum(call.text(1), W_o)[0], output[1], atol=1e-5, rtol=0)
    with record(values=True) as trace, torch.no_grad():
        model(torch.randint(3, 20, (2, 5)))
    shares = contribution_shares(trace, model)[call.site]
    norms = contribution_norms(trace[call.site], W_o)
    torch.testing.assert_close(shares.weights(), norms / norms.sum(dim=-1, keepdim=True), atol=1e-5, rtol=0)
    torch.testing.assert_close(shares.weights(head=2, queries=slice(1, 3)), shares.weights()[:, 2, 1:3])
    save_trace(trace, tmp_path / "gated.safetensors")
    loaded = load_trace(tmp_path / "gated.safetensors")[call.site]
    assert torch.equal(contribution_sum(loaded, W_o), contribution_sum(trace[call.site], W_o))


def test_an_edit_and_a_gate_together(tmp_path: Path) -> None:
    site = "decoder.0.self"
    model, call, output = ran("qwen3_next", GATED["qwen3_next"], {site: gate([1, 2], torch.tensor([0.0, 1.5]))})
    W_o = output_projection(model, site)
    torch.testing.assert_close(contribution_sum(call, W_o), output, atol=1e-5, rtol=0)
    with intervene({site: gate(1, 0.5)}), record(values=True) as trace, torch.no_grad():
        model(torch.randint(3, 20, (1, 4)))
    save_trace(trace, tmp_path / "edited.safetensors")
    with pytest.raises(ValueError, match=r"record\(values=True\)"):
        contribution_sum(load_trace(tmp_path / "edited.safetensors")[site], W_o)


def test_another_change_is_refused() -> None:
    """BitNet normalises what its heads write, number by number with learned factors."""
    model, call, _ = ran("bitnet", {**GROUPED, "intermediate_size": 48})
    nn.init.normal_(model.layers[0].self_attn.attn_sub_norm.weight)
    with record(values=True) as trace, torch.no_grad():
        model(torch.randint(3, 20, (2, 5)))
    for each in (trace[call.site], trace.text(0)[call.site]):
        with pytest.raises(ValueError, match="changes it in another way"):
            contribution_sum(each, output_projection(model, call.site))


@pytest.mark.parametrize("family", ["bert", "gpt2", "llama", "t5", "bart", "vit", "gpt-oss", "dinov2"])
def test_layers_that_project_what_their_heads_write_have_no_gate(family: str) -> None:
    model = in_memory(family)
    instrument(model)
    with record(values=True) as trace, torch.no_grad():
        model(**inputs_of(model))
    hooks = [hook for part in model.modules() for hook in part._forward_pre_hooks.values()]
    assert hooks.count(viz_core.hub.attention._before_projection) == len(trace), "each layer's projection is compared"
    assert all(call.source.gate is None and not call.source.is_changed for call in trace)
    restore(model)
    assert not any(part._forward_pre_hooks for part in model.modules())
