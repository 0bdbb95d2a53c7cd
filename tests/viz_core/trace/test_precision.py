"""What is recorded is what was used: in each precision, under autocast, and where weights are changed."""

import warnings
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tests.viz_core.hub.families import in_memory, inputs_of
from viz_core.hub import instrument
from viz_core.maps.contributions import contribution_sum
from viz_core.models.anatomy import output_projection
from viz_core.trace import attend, attention_weights, gate, head_outputs, intervene, record

TABLE = Path(__file__).resolve().parents[3] / "docs" / "precision.md"
SITE = "decoder.1.self"
DTYPES = {
    "float64": torch.float64,
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "autocast to bfloat16": torch.float32,
    "int8 (`quantize_dynamic`)": torch.float32,
}


def bounds() -> dict[str, list[str]]:
    lines = [line for line in TABLE.read_text(encoding="utf-8").splitlines() if line.startswith("| ")][2:]
    rows = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    return {name: cells for name, *cells in rows}


def model_in(name: str) -> tuple[Any, AbstractContextManager[Any]]:
    model = in_memory("llama").to(DTYPES[name])
    if name.startswith("int8"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's: it moves to another package
            model = torch.ao.quantization.quantize_dynamic(model, {nn.Linear}, dtype=torch.qint8)
    instrument(model)
    return model, torch.autocast("cpu", torch.bfloat16) if name.startswith("autocast") else nullcontext()


def relative(found: Tensor, expected: Tensor) -> float:
    expected = expected.double()
    return float((found.double() - expected).abs().max() / expected.abs().max())


@pytest.mark.parametrize("edited", [False, True])
@pytest.mark.parametrize("name", DTYPES)
@torch.no_grad()
def test_a_model(name: str, edited: bool) -> None:
    """Maps against a float64 softmax of what was recorded; outputs and contributions against what the layer gave."""
    model, context = model_in(name)
    layer, given = model.model.layers[1].self_attn.o_proj, list[tuple[Tensor, Tensor]]()
    hook = layer.register_forward_hook(lambda _, inputs, output: given.append((inputs[0], output)))
    edits = {SITE: gate(1, 0.5)} if edited else {}
    inputs = {"input_ids": inputs_of(model)["input_ids"]}
    with context, record(values=True) as trace, intervene(edits):
        model(**inputs)
    hook.remove()
    call, (pooled, output) = trace[SITE], given[0]
    of_maps, of_outputs, of_contributions = bounds()[name]
    queries, keys = call.source.queries.double(), call.source.keys.double().repeat_interleave(2, dim=1)
    scores = (queries @ keys.mT * call.source.scale).masked_fill(torch.ones(9, 9).triu(1).bool(), -torch.inf)
    assert float((call.weights() - scores.softmax(dim=-1)).abs().max()) <= float(of_maps)
    assert relative(head_outputs(call).transpose(1, 2).flatten(2), pooled) <= float(of_outputs)
    if of_contributions == "refused":
        with pytest.raises(ValueError, match="rounds its inputs"):
            contribution_sum(call, output_projection(model, SITE))
    else:
        assert relative(contribution_sum(call, output_projection(model, SITE)), output) <= float(of_contributions)


def test_a_bias_beyond_the_range_of_the_scores() -> None:
    q, k, v = torch.randn(3, 1, 2, 4, 8).half()
    bias = torch.zeros(1, 1, 4, 4)
    bias[..., 1, 2:], bias[..., 3, :] = -1e5, -1e5
    with record(values=True) as trace:
        output = attend(q, k, v, bias=bias)
    weights, (of_maps, of_outputs, _) = trace["attention.0"].weights(), bounds()["float16, biases below -65,504"]
    scores = (q.double() @ k.double().mT * 8**-0.5 + torch.where(bias < 0, -torch.inf, 0.0)).softmax(dim=-1)
    assert not weights[..., 3, :].any()
    assert float((weights - scores.nan_to_num(0.0)).abs().max()) <= float(of_maps)
    assert relative(head_outputs(trace["attention.0"]), output) <= float(of_outputs)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("door", ["attend", "torch"])
def test_recorded_as_cast_and_read_anywhere(door: str, dtype: torch.dtype) -> None:
    """Queries and keys in float32, as rotary positions leave them, beside values that are cast already."""
    queries, keys, values = torch.randn(3, 2, 4, 5, 8)
    values = values.to(dtype)
    with torch.autocast("cpu", dtype=dtype):
        expected = F.scaled_dot_product_attention(queries, keys, values, is_causal=True)
        with record(torch_calls=door == "torch") as trace:
            if door == "torch":
                output = F.scaled_dot_product_attention(queries, keys, values, is_causal=True)
            else:
                output = attend(queries, keys, values, causal=True)
        call = trace["attention.0"]
        within, thumbnails = call.weights(), call.overview(5)
    assert output.dtype == dtype
    assert torch.equal(output, expected)
    assert torch.equal(within, attention_weights(queries.to(dtype), keys.to(dtype), causal=True))
    assert torch.equal(call.weights(), within)
    assert torch.equal(thumbnails, within)


class OwnAttention(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.num_heads, self.kind = 4, kind
        self.qkv, self.proj, self.q2 = nn.Linear(32, 96), nn.Linear(32, 32, bias=False), nn.Linear(32, 64)
        self.mix = nn.Parameter(torch.randn(4, 4))
        self.used, self.values = torch.empty(0), torch.empty(0)

    def forward(self, x: Tensor) -> Tensor:
        queries, keys, values = self.qkv(x).unflatten(-1, (3, 4, 8)).permute(2, 0, 3, 1, 4)
        weights = (queries @ keys.mT / 8**0.5).softmax(-1)
        if self.kind == "masked, not renormalised":
            weights = weights * torch.ones_like(weights[0, 0]).tril()
        elif self.kind == "masked in place and renormalised":
            weights *= torch.ones_like(weights[0, 0]).tril()
            weights /= weights.sum(-1, keepdim=True)
        elif self.kind == "difference":
            q2, k2 = self.q2(x).unflatten(-1, (2, 4, 8)).permute(2, 0, 3, 1, 4)
            weights = weights - 0.5 * (q2 @ k2.mT / 8**0.5).softmax(-1)
        elif self.kind == "talking heads":
            weights = torch.einsum("b h i j, h g -> b g i j", weights, self.mix)
        self.used, self.values = weights.detach().clone(), values.detach()
        if self.kind == "dropout":
            weights = nn.functional.dropout(weights, 0.5)
        elif self.kind == "half":
            out = (weights.bfloat16().flatten(0, 1) @ values.bfloat16().flatten(0, 1)).unflatten(0, (-1, 4)).float()
            return self.proj(out.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]
        if self.kind in ("talking heads", "einsum"):
            out = torch.einsum("b h i j, b h j d -> b h i d", weights, values)
        else:
            out = weights @ values
        return self.proj(out.transpose(1, 2).flatten(2))  # type: ignore[no-any-return]


KINDS = {
    "plain": False,
    "einsum": False,
    "dropout": False,
    "half": False,
    "masked, not renormalised": True,
    "masked in place and renormalised": False,
    "difference": True,
    "talking heads": True,
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [6, 8])  # as many tokens as a head is wide: queries look like weights
def test_the_map_is_what_the_values_are_multiplied_by(kind: str, n: int) -> None:
    torch.manual_seed(0)
    net = nn.Sequential(OwnAttention(kind), OwnAttention(kind))
    x = torch.randn(2, n, 32)
    torch.manual_seed(1)
    with torch.no_grad():
        expected = net(x)
    torch.manual_seed(1)
    with torch.no_grad(), record(torch_calls=net, values=True) as trace:
        assert torch.equal(net(x), expected)
    assert trace.sites == ("encoder.0.self", "encoder.1.self")
    for call, layer in zip(trace, net, strict=True):
        torch.testing.assert_close(call.weights(), layer.used, atol=1e-6, rtol=0)
        assert call.signed is KINDS[kind]
        if kind not in ("dropout", "half"):
            written = layer.proj((layer.used @ layer.values).transpose(1, 2).flatten(2))
            torch.testing.assert_close(contribution_sum(call, layer.proj), written, atol=1e-5, rtol=0)
