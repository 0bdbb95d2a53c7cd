"""Shares and lengths of contributions in our models and others: with adapters, gates, int8."""

import warnings
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn

from tests.viz_core.hub.families import in_memory, inputs_of
from viz_core.hub import instrument
from viz_core.maps.contributions import (
    contribution_lengths,
    contribution_norms,
    contribution_shares,
    contribution_sum,
    contribution_vectors,
)
from viz_core.models import BlockOptions, Seq2SeqAttentionDecoder, TransformerEncoder
from viz_core.models.anatomy import output_projection
from viz_core.trace import AttentionCall, Trace, gate, intervene, load_trace, record, save_trace
from viz_core.trace.record import recording_values


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
        norms = contribution_norms(call, encoder.blocks[call.layer].attention.W_o)
        expected = norms / norms.sum(dim=-1, keepdim=True)
        shares = found[call.site]
        torch.testing.assert_close(shares.weights(), expected, atol=1e-6, rtol=1e-5)
        torch.testing.assert_close(shares.weights().sum(dim=-1), torch.ones(2, 4, 9))
        tile = shares.weights(head=2, queries=slice(1, 4), keys=slice(3, 8))
        torch.testing.assert_close(tile, expected[:, 2, 1:4, 3:8], atol=1e-6, rtol=1e-5)
        assert torch.equal(shares.overview(64), shares.weights())
        assert float((expected - call.weights()).abs().max()) > 1e-2, "shares that are weights would prove nothing"


def test_a_padded_word_adds_nothing_to_additive_attention() -> None:
    """Bahdanau's c_t = sum_j a_tj h_j: a word's share is that of a_tj |h_j|."""
    model, states = Seq2SeqAttentionDecoder(11, 6, 8, 2), torch.randn(1, 5, 8)
    with recording_values(), record() as trace, torch.no_grad():
        model(torch.tensor([[1, 4, 2]]), model.init_state((states, torch.randn(2, 1, 8)), torch.tensor([4])))
    added = trace["decoder.0.cross"].weights() * states.norm(dim=-1)
    found = contribution_shares(trace, model)["decoder.0.cross"].weights()
    torch.testing.assert_close(found, added / added.sum(dim=-1, keepdim=True))
    assert not found[..., 4].any()


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


SITE = "decoder.1.self"


class Lora(nn.Module):
    """A linear layer and its adapter, as in peft (Hu 2021, equation 3): W x + B A x."""

    def __init__(self, base: nn.Linear) -> None:
        super().__init__()
        self.base_layer, self.in_features, self.out_features = base, base.in_features, base.out_features
        self.lora_A, self.lora_B = nn.Linear(base.in_features, 4, False), nn.Linear(4, base.out_features, False)

    def forward(self, x: Tensor) -> Tensor:
        return self.base_layer(x) + self.lora_B(self.lora_A(x))


def adapted(model: Any) -> Any:
    for layer in model.model.layers:
        for name in ("q_proj", "v_proj", "o_proj"):
            setattr(layer.self_attn, name, Lora(getattr(layer.self_attn, name)))
    return model


def quantised(model: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch's: it moves to another package
        return torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8)


def changed(change: Any, before: bool) -> Any:
    """A model that is changed before or after it is instrumented."""
    model = in_memory("llama")
    if before:
        model = change(model)
    instrument(model)
    return model if before else change(model)


@pytest.mark.parametrize("before", [True, False])
@torch.no_grad()
def test_adapters(before: bool) -> None:
    model, outputs = changed(adapted, before), list[Tensor]()
    layer = model.model.layers[1].self_attn.o_proj
    hook = layer.register_forward_hook(lambda _layer, _inputs, output: outputs.append(output))
    with record(values=True) as trace:
        model(**inputs_of(model))
    hook.remove()
    W_o = output_projection(model, SITE)
    assert W_o is layer
    torch.testing.assert_close(contribution_sum(trace[SITE], W_o)[0], outputs[0][0], atol=1e-5, rtol=1e-4)
    norms = contribution_norms(trace[SITE], W_o)[0]
    shares = contribution_shares(trace, model)[SITE].weights()[0]
    torch.testing.assert_close(shares, norms / norms.sum(dim=-1, keepdim=True))


@pytest.mark.parametrize("before", [True, False])
@torch.no_grad()
def test_int8(before: bool) -> None:
    model = changed(quantised, before)
    plain = model(**inputs_of(model)).logits
    with record(values=True) as trace:
        assert torch.equal(model(**inputs_of(model)).logits, plain)
    assert trace.sites == ("decoder.0.self", SITE)
    assert not trace[SITE].source.is_changed
    with pytest.raises(ValueError, match="expected a layer that is linear, got Linear, which rounds its inputs"):
        contribution_shares(trace, model)


SIZES = {"vocab_size": 20, "hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "head_dim": 8}
GROUPED = {**SIZES, "num_key_value_heads": 2}
GATED: dict[str, dict[str, Any]] = {
    "qwen3_next": {
        **GROUPED,
        **{"num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 4},
        **{"shared_expert_intermediate_size": 4, "layer_types": ["full_attention"]},
    },
    "qwen3_5_text": {**GROUPED, "intermediate_size": 48, "layer_types": ["full_attention"]},
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
@pytest.mark.parametrize("edits", [{}, {"decoder.0.self": gate([1, 2], torch.tensor([0.0, 1.5]))}])
def test_a_gate_is_part_of_every_contribution(family: str, edits: dict[str, Any], tmp_path: Path) -> None:
    model, call, output = ran(family, GATED[family], edits)
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


def test_another_change_is_refused() -> None:
    """BitNet normalises what its heads write, number by number with learned factors."""
    model, call, _ = ran("bitnet", {**GROUPED, "intermediate_size": 48})
    nn.init.normal_(model.layers[0].self_attn.attn_sub_norm.weight)
    with record(values=True) as trace, torch.no_grad():
        model(torch.randint(3, 20, (2, 5)))
    for each in (trace[call.site], trace.text(0)[call.site]):
        with pytest.raises(ValueError, match="changes it in another way"):
            contribution_sum(each, output_projection(model, call.site))
