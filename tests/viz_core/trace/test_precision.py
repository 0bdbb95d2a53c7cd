"""Exact to which precision: docs/precision.md, held against models in each."""

from __future__ import annotations

import warnings
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.viz_core.hub.families import in_memory, inputs_of
from viz_core.hub import instrument
from viz_core.maps.contributions import contribution_sum
from viz_core.models.anatomy import output_projection
from viz_core.trace import attend, gate, head_outputs, intervene, record

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
    """The table's cells by precision."""
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


@pytest.mark.parametrize("name", ["float16, biases below -65,504"])
def test_a_bias_beyond_the_range_of_the_scores(name: str) -> None:
    """It masks, in the kernel and in the map: a whole row of it gives zeros."""
    torch.manual_seed(2)
    q, k, v = torch.randn(3, 1, 2, 4, 8).half()
    bias = torch.zeros(1, 1, 4, 4)
    bias[..., 1, 2:], bias[..., 3, :] = -1e5, -1e5
    with record(values=True) as trace:
        output = attend(q, k, v, bias=bias)
    call = trace["attention.0"]
    of_maps, of_outputs, _ = bounds()[name]
    assert not call.weights()[..., 3, :].any()
    assert not call.weights()[..., 1, 2:].any()
    scores = (q.double() @ k.double().mT * 8**-0.5 + torch.where(bias < 0, -torch.inf, 0.0)).softmax(dim=-1)
    assert float((call.weights() - scores.nan_to_num(0.0)).abs().max()) <= float(of_maps)
    assert relative(head_outputs(call), output) <= float(of_outputs)
