"""Published models with padded batches: measures and edits of a text are those of the text alone."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.viz_core.hub.in_memory import in_memory, output_of
from viz_core.hub import instrument
from viz_core.maps.fingerprints import measure_layer
from viz_core.trace import gate, intervene, knock_out, mean, mean_outputs, off, patch, pattern, record, uniform, window

TEXT, LONG = 5, 9


def batch(side: str) -> dict[str, Tensor]:
    drawn = torch.randint(4, 190, (2, LONG), generator=torch.Generator().manual_seed(1))
    real = torch.ones(2, LONG, dtype=torch.bool)
    real[0] = torch.arange(LONG) >= LONG - TEXT if side == "left" else torch.arange(LONG) < TEXT
    positions = (real.long().cumsum(dim=-1) - 1).clamp_min(0)
    return {"input_ids": drawn.where(real, 0), "attention_mask": real.long(), "position_ids": positions}


def alone(inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    real = inputs["attention_mask"][0].bool()
    return {name: tensor[:1, real] for name, tensor in inputs.items()}


def run(model: Any, inputs: dict[str, Tensor], edits: dict[str, Any]) -> tuple[Tensor, Any]:
    with torch.no_grad(), intervene(edits), record(values=True) as trace:
        return output_of(model(**inputs)), trace


def edits_of(trace: Any, site: str) -> dict[str, Any]:
    call = trace[site]
    return {
        "nothing": None,
        "off": off(0),
        "gate": gate([0, 1], torch.tensor([0.5, 2.0])),
        "mean": mean(1, mean_outputs(call)),
        "uniform": uniform(None),
        "first": pattern(None, "first"),
        "previous": pattern(1, "previous"),
        "knock out": knock_out(None, key=0),
        "window": window(None, 2, first=1),
        "patch": patch(0, call.text(0), queries=slice(1, 3)),
    }


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("family", ["gpt2", "llama", "bert", "gemma2"])
def test_a_text_in_a_padded_batch_is_edited_and_measured_as_alone(family: str, side: str) -> None:
    model = in_memory(family)
    sites, inputs = instrument(model), batch(side)
    real = inputs["attention_mask"][0].bool()
    _, reference = run(model, inputs, {})
    for name, edit in edits_of(reference, sites[0]).items():
        chosen = {} if edit is None else {sites[0]: edit}
        padded, trace = run(model, inputs, chosen)
        expected, own = run(model, alone(inputs), chosen)
        torch.testing.assert_close(padded[:1, real], expected, atol=1e-5, rtol=0, msg=lambda m, n=name: f"{n}: {m}")
        for site in sites:
            for found, wanted in zip(
                measure_layer(trace[site]).fingerprints, measure_layer(own[site]).fingerprints, strict=True
            ):
                assert found == pytest.approx(wanted, abs=1e-5), (name, site)
