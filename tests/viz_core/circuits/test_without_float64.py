"""A device without float64: what is computed in it is computed on the CPU, and is the same."""

from typing import Any

import pytest
import torch
from torch import Tensor

from tests.viz_core.circuits.hooked import made
from tests.viz_core.fake_mps import MPS, FakeMps
from tests.viz_core.hub.families import in_memory, inputs_of
from viz_core.circuits import logit_attribution, ov_circuit, qk_circuit, score_attribution
from viz_core.hub import instrument
from viz_core.maps.score_products import score_products
from viz_core.trace import record


def found(model: Any, inputs: dict[str, Tensor]) -> list[Tensor]:
    with record(values=True, states=True) as trace, torch.no_grad():
        model(**inputs)
    site = trace.sites[-1]
    parts = () if site.startswith("encoder") else logit_attribution(model, trace, 5, against=6)
    score = score_attribution(model, trace, site, 1, 3, 1)
    circuits = [circuit(model, site, 1) for circuit in (ov_circuit, qk_circuit)]
    return [
        *(part.value for part in parts),
        score.terms,
        *(circuit.left @ circuit.right for circuit in circuits),
        torch.tensor(score_products(trace[site], 1, 3, 1).products),
    ]


@pytest.mark.parametrize("family", ["ours", "gpt2", "llama", "bart"])
def test_circuits_on_a_device_without_float64(family: str) -> None:
    if family == "bart":
        model = in_memory(family)
        instrument(model)
        inputs = inputs_of(model)
    else:
        model, _, inputs, *_ = made(family)
    expected = found(model, inputs)
    mode = FakeMps()
    mode.put(model)
    with mode:
        seen = found(model, {name: each.to(MPS) for name, each in inputs.items()})
        seen = [each.cpu() for each in seen]
    for own, other in zip(seen, expected, strict=True):
        torch.testing.assert_close(own, other)


def test_the_device_of_the_tests_has_no_float64() -> None:
    tensor = torch.ones(2)
    with FakeMps():
        there = tensor.to(MPS)
        assert there.device == MPS
        for wrong in (there.double, lambda: there.to("cpu", torch.float64), lambda: there + torch.ones(2), there.numpy):
            with pytest.raises((TypeError, RuntimeError)):
                wrong()
        assert torch.equal(there.cpu().double(), tensor.double())
