"""Models with LoRA, or quantised to int8, before or after `instrument`: contributions are exact, or refused."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.viz_core.hub.families import in_memory, inputs_of
from viz_core.hub import instrument
from viz_core.maps.contributions import contribution_norms, contribution_shares, contribution_sum
from viz_core.models.anatomy import output_projection
from viz_core.trace import record

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
