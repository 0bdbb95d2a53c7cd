"""The first recorded pass: what changes a model is noticed, and what both passes compute is computed once."""

import contextvars
import functools
import sys
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import _get_current_function_mode
from torch.utils.flop_counter import FlopCounterMode

from tests.viz_core.hub.families import in_memory, inputs_of
from tests.viz_core.hub.test_verify import output_error
from viz_core.hub import instrument, verify
from viz_core.hub.twins import Products
from viz_core.trace import AttentionCall, intervene, record
from viz_core.trace.passes import call_layer, named_sites
from viz_core.trace.weights import packed_texts

FAULTS: dict[str, Callable[[Tensor], Tensor]] = {
    "output": lambda output: output * 1.01,
    "last query": lambda output: torch.cat((output[:, :, :-1], 1.01 * output[:, :, -1:]), dim=2),
    "half precision": lambda output: output.half().float(),
    "one number": lambda output: output.index_fill(3, torch.tensor(2), 0.0),
}


@pytest.mark.parametrize("is_inference", [False, True])
@pytest.mark.parametrize("layer", ["decoder.0.self", "decoder.1.self"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_recording_that_changes_one_layer_is_noticed(
    fault: str, layer: str, is_inference: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, module = in_memory("llama"), sys.modules["viz_core.hub.attention"]
    for part in model.model.layers:  # attention counts as in a trained model
        part.self_attn.o_proj.weight.data.mul_(50)
    original, inputs = module.attend, inputs_of(model)
    instrument(model)

    def changed(*given: Tensor, site: str, **options: Any) -> Tensor:
        output: Tensor = original(*given, site=site, **options)
        return FAULTS[fault](output) if site == layer else output

    with monkeypatch.context() as patched:
        patched.setattr(module, "attend", changed)
        with torch.inference_mode(is_inference), record() as trace, pytest.raises(ValueError, match="recording would"):
            model(**inputs)
        assert len(trace) == 0
    with torch.inference_mode(is_inference), record() as trace:
        model(**inputs)
    assert output_error(trace) == 0


def test_one_row_of_a_map_that_is_not_the_models_is_in_the_report(monkeypatch: pytest.MonkeyPatch) -> None:
    original = AttentionCall.weights

    def changed(call: AttentionCall, *given: Any, **options: Any) -> Tensor:
        weights = original(call, *given, **options)
        if call.site == "encoder.1.self" and weights.shape[2] == call.num_queries:
            weights[:, 1, -1] = weights[:, 0, -1]  # of another head
        return weights

    model = in_memory("bert")
    monkeypatch.setattr(AttentionCall, "weights", changed)
    errors = verify(model, **inputs_of(model)).map_errors
    assert errors["encoder.1.self"] > 1e-4
    assert errors["encoder.0.self"] < 1e-5


@torch.no_grad()
@pytest.mark.parametrize("family", ["bert", "gpt2"])
def test_products_that_both_passes_have_are_computed_once(family: str) -> None:
    model, inputs = in_memory(family), inputs_of(in_memory(family))
    instrument(model)
    counts = []
    for _ in range(2):
        with FlopCounterMode(display=False) as counter, record() as trace:
            model(**inputs)
        assert output_error(trace) == 0
        counts.append(counter.get_total_flops())
    assert counts[0] < 1.3 * counts[1]


class Tripled(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.mul_(3)


@pytest.mark.parametrize("is_inference", [False, True])
def test_a_product_that_a_model_changes_is_not_taken_over(is_inference: bool) -> None:
    model = in_memory("bert")
    for layer in model.encoder.layer:
        layer.intermediate.intermediate_act_fn = Tripled()
    inputs = inputs_of(model)
    with torch.no_grad():
        expected = model(**inputs)[0]
    instrument(model)
    with torch.no_grad(), torch.inference_mode(is_inference), record() as trace:
        found = model(**inputs)[0]
    torch.testing.assert_close(found, expected)
    assert output_error(trace) == 0
    products, weight, x = Products(), nn.Parameter(torch.randn(2, 2)), torch.randn(3, 2)
    with torch.inference_mode(is_inference):
        with products:
            first = F.linear(x, weight, None)
        copied = first.clone()
        with products.again():
            F.linear(x, weight, None).zero_()
    assert torch.equal(first, copied)


@torch.no_grad()
def test_a_product_with_other_weights_is_not_taken_over() -> None:
    products, x = Products(), torch.randn(3, 2)

    def check_product(weight: nn.Parameter) -> None:
        torch.testing.assert_close(F.linear(x, weight, None), x @ weight.T)

    def check_freed() -> None:  # as offloading does: their ids are used again
        for _ in range(20):
            check_product(nn.Parameter(torch.randn(2, 2)))

    changed = [nn.Parameter(torch.randn(2, 2))]
    with torch.inference_mode():  # where torch does not count changes
        changed.append(nn.Parameter(torch.randn(2, 2)))
    with products:
        check_freed()
        for weight in changed:
            check_product(weight)
    with torch.inference_mode():
        for weight in changed:
            weight.mul_(2)
    with products.again():
        check_freed()
        for weight in changed:
            check_product(weight)


def test_a_product_that_exceeds_the_memory_is_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("viz_core.hub.twins._MOST_STORED", 1000)
    products, weights = Products(), [nn.Parameter(torch.randn(size, 2)) for size in (500, 2)]
    with torch.inference_mode(), products:
        for weight in weights:
            F.linear(torch.randn(3, 2), weight, None)
    assert [each.product.shape for [each] in products._stored.values()] == [(3, 2)]


def fail(*_: Any) -> None:
    raise RuntimeError


def test_a_pass_that_fails_leaves_no_products(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Products] = []
    monkeypatch.setattr("viz_core.hub.first_pass.Products", lambda: made.append(Products()) or made[-1])
    model = in_memory("bert")
    instrument(model)
    model.encoder.layer[1].register_forward_hook(fail)
    with record():
        for _ in range(2):
            with pytest.raises(RuntimeError):
                model(**inputs_of(model))
        assert [len(each._stored) for each in made] == [0, 0]


def interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


def in_own_context(test: Callable[[], None]) -> Callable[[], None]:
    """Leave what an ended pass leaves behind to this test alone."""

    @functools.wraps(test)
    def run() -> None:
        contextvars.copy_context().run(test)

    return run


@in_own_context
def test_a_pass_that_changes_weights_or_ends_early_is_not_verified() -> None:
    model, inputs = in_memory("bert"), inputs_of(in_memory("bert"))
    instrument(model)

    hook = model.encoder.layer[1].register_forward_hook(interrupt)
    other = in_memory("bert")
    instrument(other)
    for following in (other, model):
        model.attention_check.report = None
        with record(), pytest.raises(KeyboardInterrupt):
            model(**inputs)
        if following is model:
            hook.remove()
        with record() as trace:
            following(**inputs)
        assert output_error(trace) == 0
        assert _get_current_function_mode() is None
    model.attention_check.report = None
    layer = model.encoder.layer[0]

    def change(*_: Any) -> None:
        layer.output.dense.weight.detach().mul_(1)

    layer.register_forward_hook(change)
    with record() as trace:
        model(**inputs)
    assert "changed the model's weights" in str(trace.verification)


@pytest.mark.filterwarnings("ignore:record. nothing was recorded")
@in_own_context
def test_after_an_ended_pass_layers_have_their_own_names() -> None:
    """Ctrl-C runs no hook at the end of a pass: what it counted and knew of its texts met the models that came next."""
    model, layer = in_memory("bert"), nn.Linear(2, 2)
    instrument(model)
    handle = model.encoder.layer[1].register_forward_hook(interrupt)
    for block in (nullcontext(), record()):
        with block, pytest.raises(KeyboardInterrupt):
            model(torch.ones(1, 5, dtype=torch.long), position_ids=torch.tensor([[0, 1, 2, 0, 1]]))
        assert _get_current_function_mode() is None
    assert {*named_sites(model).values()} == {"encoder.0.self", "encoder.1.self"}
    handle.remove()
    for block in (record(), intervene({})):
        with block:
            assert [call_layer(layer, "encoder.0") for _ in range(2)] == ["encoder.0", "encoder.0"]
            assert packed_texts.get() is None
