"""Layers without a softmax as they are used: their signed maps against the models' own rules on one-hot values."""

import functools
import inspect
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.viz_core.hub.families import HYBRIDS, hybrid
from viz_core.hub import instrument, restore
from viz_core.hub.transformers_internals import RULES, rules_of
from viz_core.maps.contributions import contribution_shares, contribution_sum
from viz_core.maps.fingerprints import measure_layer, row_sum_error
from viz_core.models.anatomy import output_projection
from viz_core.trace import (
    AttentionCall,
    gate,
    head_outputs,
    intervene,
    knock_out,
    load_trace,
    mean,
    mean_outputs,
    off,
    patch,
    record,
    save_trace,
    sharpen,
    site_of,
)
from viz_core.trace.sites import is_linear_attention

IDS = torch.randint(4, 390, (2, 70), generator=torch.Generator().manual_seed(5))
MASK = (torch.arange(70) >= torch.tensor([[0], [27]])).long()
REAL = MASK.bool()


class Spy:
    """What the rules of a model were given and gave, by site, in its own code: (batch, heads, n, v)."""

    def __init__(self, model: Any) -> None:
        self.model, self.site = model, ""
        self.outputs: dict[str, Tensor] = {}
        self.maps: dict[str, Tensor] = {}
        self.layers = [layer for layer in model.modules() if is_linear_attention(layer)]
        self._patch = pytest.MonkeyPatch()

    def __enter__(self) -> "Spy":
        with record():  # from here on our own functions stand around the rules
            self.model(IDS[:, :2])
        self._handles = [layer.register_forward_pre_hook(self._enter) for layer in self.layers]
        for layer in self.layers:
            if hasattr(layer, "slope_rate"):
                self._handles.append(layer.qkv_proj.register_forward_hook(functools.partial(self._lightning, layer)))
                self._handles.append(layer.norm.register_forward_pre_hook(functools.partial(self._written, layer)))
        for names in {id(rules_of(type(layer))): rules_of(type(layer)) for layer in self.layers}.values():
            for name in {*RULES} & {*names}:
                self._patch.setitem(names, name, self._around(names[name]))
        return self

    def __exit__(self, *_: object) -> None:
        self._patch.undo()
        for handle in self._handles:
            handle.remove()

    def residual(self, call: AttentionCall) -> float:
        """Return the largest difference of a map, relative to the largest weight where that is above 1."""
        expected = self.maps[call.site]
        return float((call.weights() - expected).abs().max()) / max(1.0, float(expected.abs().max()))

    def _enter(self, layer: Any, _inputs: Any) -> None:
        self.site = str(site_of(layer))

    def _around(self, rule: Any) -> Any:
        @functools.wraps(rule)
        def run(*args: Any, **kwargs: Any) -> Any:
            result = rule(*args, **kwargs)
            given = inspect.signature(rule).bind(*args, **kwargs).arguments
            values = "value" if "value" in given else "hidden_states"
            batch, n, heads, _ = given[values].shape
            own = inspect.unwrap(rule)
            given.pop("kwargs", None)
            wide = {
                name: each.float() if isinstance(each, Tensor) and each.is_floating_point() else each
                for name, each in given.items()
            }
            one_hot = torch.eye(n)[None, :, None].expand(batch, n, heads, n)
            mapped = own(**{**wide, values: one_hot})
            self.maps[self.site] = (mapped[0] if isinstance(mapped, tuple) else mapped).transpose(1, 2).detach()
            self.outputs[self.site] = (result[0] if isinstance(result, tuple) else result).transpose(1, 2).detach()
            return result

        return run

    def _lightning(self, layer: Any, _projection: Any, _inputs: Any, projected: Tensor) -> None:
        """Run S_i = exp(-slope) S_(i-1) + k_i e_i step by step, as the paper writes it."""
        states = layer.act_fn(projected).double().detach() * (MASK[..., None] if len(projected) == 2 else 1)
        Q, K, _ = states.unflatten(-1, (layer.num_attention_heads, -1)).transpose(1, 2).chunk(3, dim=-1)
        state, rows, n = Q.new_zeros(*K.shape[:2], K.shape[-1], K.shape[2]), list[Tensor](), K.shape[2]
        for i in range(n):
            state = torch.exp(-layer.slope_rate.double()) * state + K[:, :, i, :, None] * torch.eye(n)[i].double()
            rows.append((Q[:, :, i, None] @ state)[:, :, 0])
        self.maps[self.site] = torch.stack(rows, dim=2).float()

    def _written(self, layer: Any, _norm: Any, inputs: Any) -> None:
        self.outputs[self.site] = inputs[0].unflatten(-1, (layer.num_attention_heads, -1)).transpose(1, 2).detach()


@pytest.fixture(
    scope="module", params=["qwen3_next", "kimi_linear", "minimax", "bamba"]
)  # one for each rule; the others by their maps
def family(request: pytest.FixtureRequest) -> Any:
    return request.param


@pytest.fixture(scope="module")
def model(family: str) -> Iterator[Any]:
    made = hybrid(family)
    instrument(made)
    yield made
    restore(made)


def linear(trace: Any) -> list[AttentionCall]:
    return [call for call in trace if call.rule != "softmax"]


def passed(model: Any, **options: Any) -> Any:
    with torch.no_grad():
        return model(IDS, attention_mask=MASK, use_cache=False, **options).logits


def test_maps_are_what_the_rule_gives_for_one_hot_values(family: str, model: Any, tmp_path: Path) -> None:
    plain = passed(hybrid(family))
    with Spy(model) as spy, record(values=True) as trace:
        assert torch.equal(passed(model), plain), "recording changes no bit"
    calls = linear(trace)
    assert {call.site for call in calls} == {*spy.maps}
    assert len(calls) == len(spy.layers)
    for call in calls:
        assert call.signed
        assert call.rule == HYBRIDS[family][1]
        assert torch.equal(call.key_mask, REAL)
        assert torch.equal(call.query_mask, REAL)
        found, output = call.weights(), spy.outputs[call.site]
        size = max(1.0, float(output.abs().max()))
        assert spy.residual(call) < 1e-6
        assert float((found @ call.values - output).abs().max()) < 1e-6 * size
        assert float(found.min()) < -1e-4, "maps without a negative weight would prove nothing"
        assert not found.triu(1).any()
        tile = call.weights(head=1, queries=slice(20, 68, 5), keys=slice(3, 40))
        torch.testing.assert_close(tile, found[:, 1, 20:68:5, 3:40], atol=1e-7, rtol=0)
    save_trace(trace, tmp_path / "rules.safetensors")
    loaded = load_trace(tmp_path / "rules.safetensors")[calls[0].site]
    assert loaded.signed
    assert torch.equal(loaded.weights(), calls[0].weights())


def test_contributions_add_up_to_what_the_layer_writes(model: Any) -> None:
    sites = [call.site for call in linear(recorded(model))]
    projections, written, handles = {site: output_projection(model, site) for site in sites}, dict[str, Tensor](), []
    for site, W_o in projections.items():
        hook = functools.partial(lambda site, _layer, _inputs, output: written.update({site: output}), site)
        handles.append(W_o.register_forward_hook(hook))
    edits = {sites[0]: [gate(0, 0.5), off(1), knock_out(2, query=40, key=38)]}
    with record(values=True) as trace, intervene(edits):
        passed(model)
    for handle in handles:
        handle.remove()
    for call in linear(trace):
        W_o = projections[call.site]
        output = written[call.site] - (0 if W_o.bias is None else W_o.bias)
        size = float(output.abs().max())
        assert float((contribution_sum(call, W_o) - output).abs().max()) < 1e-5 * size
        assert float((contribution_sum(call.text(1), W_o) - output[1:, 27:]).abs().max()) < 1e-5 * size
    shares = contribution_shares(trace, model)[sites[-1]]
    assert not shares.signed
    assert row_sum_error([shares]) < 1e-5


def test_padding_is_left_out(model: Any) -> None:
    with record() as padded, torch.no_grad():
        model.base_model(IDS, attention_mask=MASK, use_cache=False)
    with record() as alone, torch.no_grad():
        model.base_model(IDS[1:, 27:], use_cache=False)
    first = linear(padded)[0]  # later layers see what others make of padding
    torch.testing.assert_close(first.text(1).weights(), alone[first.site].weights(), atol=1e-6, rtol=1e-5)
    measured, own = measure_layer(first, 1).fingerprints, measure_layer(alone[first.site]).fingerprints
    assert {"memory", "negative"} <= measured[0].keys()
    for found, expected in zip(measured, own, strict=True):
        assert found == pytest.approx(expected, abs=1e-5)


def test_half_precision(family: str) -> None:
    model = hybrid(family).bfloat16()
    instrument(model)
    with Spy(model) as spy, record(values=True) as trace:
        passed(model)
    for call in linear(trace):
        output = spy.outputs[call.site].float()
        assert float((call.weights() - spy.maps[call.site]).abs().max()) < 1e-2 * float(spy.maps[call.site].abs().max())
        assert float((head_outputs(call) - output).abs().max()) < 2e-2 * float(output.abs().max())


def test_edits_reach_the_rule(model: Any) -> None:
    with record(values=True) as trace:
        passed(model)
    call = linear(trace)[-1]
    before, weights = head_outputs(call), call.weights()
    means = mean_outputs(call)
    patched = patch(3, linear(trace)[0], "output", queries=[2])
    edits = {call.site: [off(0), gate(1, 0.5), mean(2, means), patched, knock_out(1, query=10, key=4)]}
    with Spy(model) as spy:
        passed(model)
        plain = spy.outputs[call.site]
        with intervene({call.site: off(1)}):
            passed(model)
        assert torch.equal(spy.outputs[call.site][:, [0, 2, 3]], plain[:, [0, 2, 3]]), "the others bit for bit"
        with intervene(edits), record(values=True) as edited:
            passed(model)
    found = spy.outputs[call.site]
    now = edited[call.site]
    assert not found[:, 0].any()
    cut = weights[:, 1].clone()
    cut[0, 10, 4] = cut[1, 37, 31] = 0
    torch.testing.assert_close(now.weights()[:, 1], cut)
    torch.testing.assert_close(found[:, 1], cut @ call.values[:, 1] / 2, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(found[:, 2], means[2].expand_as(found[:, 2]))
    torch.testing.assert_close(found[1, 3, 29], head_outputs(linear(trace)[0])[1, 3, 29], atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(found[1, 3, 30:], before[1, 3, 30:], atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(head_outputs(now), found, atol=1e-6, rtol=1e-5)
    assert not now.weights()[:, [0, 2]].any()
    with pytest.raises(ValueError, match="expected off, gate, mean"), intervene({call.site: sharpen(0, 2)}):
        passed(model)
    with pytest.raises(ValueError, match="expected no differentiable"), record(differentiable=True):
        passed(model)


@torch.no_grad()
def test_an_mlstm_writes_its_map_times_values_and_is_edited() -> None:
    model, written = hybrid("xlstm"), list[Tensor]()
    layer = next(each for each in model.modules() if hasattr(each, "mlstm_backend"))
    layer.multihead_norm.register_forward_pre_hook(lambda _norm, given: written.append(given[0].transpose(1, 2)))
    instrument(model)
    with record(values=True) as trace:
        model(IDS)
    with intervene({"decoder.0.self": [off(0), gate(1, 0.5)]}):
        model(IDS)
    call, plain, edited = trace["decoder.0.self"], written[0], written[-1]
    assert float((call.weights() @ call.values - plain).abs().max()) < 1e-6 * float(plain.abs().max())
    assert 0.1 < float((call.weights().sum(dim=-1).abs() < 0.99).float().mean()) < 0.9, "both branches of the divisor"
    assert not edited[:, 0].any()
    torch.testing.assert_close(edited[:, 1], plain[:, 1] / 2)


def test_a_token_is_not_hidden_where_a_short_convolution_carries_it_on(family: str, model: Any) -> None:
    sites = [call.site for call in linear(recorded(model))]
    hide = [knock_out(None, key=5, query=slice(6, None)), knock_out(None, key=5, query=slice(0, 5))]
    changed = IDS.clone()
    changed[0, 5], changed[1, 32] = 7, 7
    if family != "minimax":
        with pytest.raises(ValueError, match="a short convolution before the"), intervene(dict.fromkeys(sites, hide)):
            passed(model)
        return
    others = [call.site for call in recorded(model) if call.rule == "softmax"]
    with intervene(dict.fromkeys([*sites, *others], hide)), torch.no_grad():
        own, other = (model(ids, attention_mask=MASK, use_cache=False).logits for ids in (IDS, changed))
    apart = (own - other).abs().amax(dim=-1)
    assert float(apart[0, 5]) > 1e-3
    assert float(torch.cat([apart[0, :5], apart[0, 6:], apart[1, 33:]]).max()) < 1e-5


def recorded(model: Any) -> Any:
    with record() as trace:
        passed(model)
    return trace


def test_steps_from_a_state_are_edited_and_not_recorded(model: Any) -> None:
    site = next(str(site_of(layer)) for layer in model.modules() if is_linear_attention(layer))
    options = {"max_new_tokens": 4, "min_new_tokens": 4, "do_sample": False, "pad_token_id": 0}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with record() as trace:
            model.generate(IDS[:1, :9], **options)
    assert any("a step from a state is not recorded" in str(each.message) for each in caught)
    assert [call.num_queries for call in trace if call.site.partition("@")[0] == site] == [9]
    with intervene({site: off(0, 1, 2, 3)}):
        stepwise = model.generate(IDS[:1, :9], return_dict_in_generate=True, output_logits=True, **options)
        whole = model(stepwise.sequences, use_cache=False).logits
    torch.testing.assert_close(torch.stack(stepwise.logits, dim=1), whole[:, 8:-1], atol=1e-4, rtol=1e-3)
    with pytest.raises(ValueError, match="for a step from a state"), intervene({site: knock_out(0, query=2, key=1)}):
        model.generate(IDS[:1, :9], **options)
