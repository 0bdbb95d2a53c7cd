"""Every family of models against what must hold for all: exact maps, the same output, states that add up, padding that
counts nowhere, heads that are off, and a model that is restored."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.viz_core.hub.families import (
    FAMILIES,
    FAMILIES_IN_MEMORY,
    HYBRIDS,
    hybrid,
    implementations,
    in_memory,
    inputs_of,
    output_of,
    projection_of,
)
from tests.viz_core.hub.measured_table import ARCHITECTURES, measure, written_rows
from viz_core.hub import instrument, restore
from viz_core.maps.fingerprints import measure_layer
from viz_core.trace import Trace, intervene, off, patch_state, record, site_of, zero

SOFTMAX = (*FAMILIES, *FAMILIES_IN_MEMORY)
PICTURES = [family for family, (_, _, tokenizer) in FAMILIES.items() if tokenizer == "picture"]
OWN_CODE = ("bloom", "deberta", "falcon", "fsmt", "xglm")
# Added after a norm of its own; by a mixer beside another; in a layer with a factor of its own.
OTHERWISE_ADDED = ("bert", "bert-fills", "sorter", "roberta", "roberta-fills", "albert", "marian", "bart", "deberta")
OTHERWISE_ADDED += ("fsmt", "falcon_h1", "minimax", "nemotron_h")


def made(family: str) -> Any:
    return hybrid(family) if family in HYBRIDS else in_memory(family)


def hooks(model: Any) -> int:
    return sum(len(part._forward_hooks) + len(part._forward_pre_hooks) for part in model.modules())


def recorded(model: Any, inputs: dict[str, Tensor]) -> Trace:
    with torch.no_grad(), record() as trace:
        model(**inputs)
    return trace


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_maps_are_exact(architecture: str) -> None:
    """Those of the model's own eager code in float64, or what its own rule gives; and the table says so."""
    found, written = measure(architecture), written_rows()[architecture]
    assert found.residual < 1e-6
    residual = written.rstrip(" |").rpartition("| ")[2]
    assert float(residual) < 1e-6
    assert written == found.row(architecture, residual)


@torch.no_grad()
@pytest.mark.parametrize("family", [*SOFTMAX, *HYBRIDS])
def test_the_output_stays_and_all_is_restored(family: str) -> None:
    model = made(family)
    inputs, before = inputs_of(model), (model.config.to_dict(), implementations(model), hooks(model))
    plain = output_of(model(**inputs))
    sites = instrument(model)
    seen = output_of(model(**inputs))
    with record(values=True, states=True) as trace:
        assert torch.equal(output_of(model(**inputs)), seen), "recording changes no bit"
    assert {site.partition("@")[0] for site in trace.sites} == {*sites}
    torch.testing.assert_close(seen, plain, atol=1e-5, rtol=1e-5)
    restore(model)
    assert torch.equal(output_of(model(**inputs)), plain)
    assert (model.config.to_dict(), implementations(model), hooks(model)) == before
    assert all(site_of(module) is None for module in model.modules())
    assert recorded(model, inputs).sites == ()


@torch.no_grad()
@pytest.mark.parametrize("family", [family for family in (*SOFTMAX, *HYBRIDS) if family != "albert"])
def test_states_are_the_models_own_and_add_up(family: str) -> None:
    model = made(family)
    inputs = inputs_of(model)
    instrument(model)
    with record(states=True) as trace:
        own = model(**inputs, output_hidden_states=True)
    states = trace.states
    for stack in {name.partition(".")[0] for name in states}:
        hidden = own.get(f"{stack}_hidden_states", own.get("hidden_states"))
        residuals = [name for name in states if name.startswith(f"{stack}.") and name.endswith(".residual")]
        streams = [f"{stack}.embedding", *residuals]
        assert residuals
        for name, expected in zip(streams[: len(hidden) - 1], hidden, strict=False):  # the last may be normalised
            assert family in ("fsmt", "mamba2") or torch.equal(states[name], expected), name
        for name, before in zip(residuals, streams, strict=False):
            layer = name.removesuffix(".residual")
            added = [states[f"{layer}.{part}"] for part in ("attention", "cross", "mlp") if f"{layer}.{part}" in states]
            if family not in OTHERWISE_ADDED:
                torch.testing.assert_close(states[before] + sum(added), states[name], atol=1e-5, rtol=1e-5)
    logits, last = output_of(model(**inputs)), residuals[-1]
    with intervene({last: patch_state(states[last])}):
        assert torch.equal(output_of(model(**inputs)), logits)
    with intervene({last: zero()}), record(states=True) as edited:
        assert not torch.equal(output_of(model(**inputs)), logits)
    assert not edited.states[last].any()


@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("family", [family for family in SOFTMAX if family not in (*PICTURES, "fsmt", "gpt-oss")])
def test_padding_counts_nowhere(family: str, side: str) -> None:
    model = made(family)
    instrument(model)
    inputs = inputs_of(model)
    real = inputs["attention_mask"].bool()
    if side == "left":
        if "position_ids" not in inspect.signature(model.forward).parameters:
            return  # places are counted from the padding
        inputs = {name: each.flip(1) for name, each in inputs.items()}
        inputs["position_ids"] = (inputs["attention_mask"].cumsum(dim=1) - 1).clamp_min(0)
        real = real.flip(1)
    alone = {name: each[1:, real[1]] if each.shape == real.shape else each[1:] for name, each in inputs.items()}
    trace, own = recorded(model, inputs), recorded(model, alone)
    assert trace.sites == own.sites
    for site in own.sites:
        torch.testing.assert_close(trace[site].text(1).weights(), own[site].weights(), atol=1e-5, rtol=0)
        if site.endswith("cross"):
            continue
        found, expected = measure_layer(trace[site], 1).fingerprints, measure_layer(own[site]).fingerprints
        assert all(one == pytest.approx(other, abs=1e-5) for one, other in zip(found, expected, strict=True)), site


@torch.no_grad()
@pytest.mark.parametrize("family", [family for family in SOFTMAX if family not in (*OWN_CODE, "diffllama", "albert")])
def test_a_head_that_is_off_is_its_columns_of_the_output_projection_at_zero(family: str) -> None:
    model = made(family)
    sites, inputs = instrument(model), inputs_of(model)
    site = next((each for each in sites if each.endswith("1.cross")), sites[1])
    before = output_of(model(**inputs))
    with intervene({site: off(2)}):
        found = output_of(model(**inputs))
    projection = projection_of(model, site)
    columns = projection.weight.T if type(projection).__name__ == "Conv1D" else projection.weight
    width = columns.shape[1] // 4
    columns[:, 2 * width : 3 * width] = 0
    torch.testing.assert_close(found, output_of(model(**inputs)), atol=1e-6, rtol=0)
    assert float((found - before).abs().max()) > 1e-3
