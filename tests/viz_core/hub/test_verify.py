"""Recording leaves models as they were: what a first pass and a report say, and copies that share weights."""

import contextvars
import copy
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.overrides import _get_current_function_mode

from tests.viz_core.hub.conftest import deepseek_v4
from tests.viz_core.hub.families import in_memory, inputs_of
from viz_core.hub import instrument, restore, verify
from viz_core.hub.attention import ATTENTION_IMPLEMENTATION
from viz_core.hub.twins import Products
from viz_core.trace import AttentionCall, Trace, intervene, off, record
from viz_core.trace.passes import call_layer
from viz_core.trace.verification import _vector_error as vector_error

IDS = torch.randint(3, 110, (2, 12), generator=torch.Generator().manual_seed(1))


def number(error: float | None) -> float:
    assert error is not None
    return error


def output_error(trace: Trace) -> float:
    assert trace.verification is not None
    return number(trace.verification.output_error)


@torch.no_grad()
def test_a_layer_that_computes_with_its_mask_is_given_the_one_it_had() -> None:
    model, mask = deepseek_v4(rate=2), torch.ones_like(IDS)
    mask[0, 10:] = 0
    expected = model(IDS, attention_mask=mask, use_cache=False)[0]
    instrument(model)
    with record() as trace:
        found = model(IDS, attention_mask=mask, use_cache=False)[0]
    torch.testing.assert_close(found[mask.bool()], expected[mask.bool()], atol=1e-5, rtol=0)
    assert output_error(trace) < 1e-5


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_changed_model_is_refused_each_time_and_nothing_is_shown(
    dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every model has the masks of fused attention, whatever it had: what changed DeepSeek V4."""
    module = sys.modules["viz_core.hub.instrument"]
    monkeypatch.setattr(module, "implementation_for", lambda *_: ATTENTION_IMPLEMENTATION)
    model = deepseek_v4(rate=2).to(dtype)
    assert number(verify(model, input_ids=IDS, use_cache=False).output_error) > 0.1
    instrument(model)
    for _ in range(2):
        with record() as trace, pytest.raises(ValueError, match=r"decoder\.1\.self, decoder\.2\.self"):
            model(IDS, use_cache=False)
        assert len(trace) == 0
    restore(model)
    assert not any(hasattr(part, "attention_check") for part in model.modules())
    instrument(model, verify=False)
    with record() as trace:
        model(IDS, use_cache=False)
    assert "verify=False" in repr(trace)


def test_only_the_first_pass_is_run_twice() -> None:
    model, calls = in_memory("llama"), list[int]()
    counting = type("Counting", (nn.Module,), {"forward": lambda _, x: calls.append(1) or F.silu(x)})
    for layer in model.model.layers:
        layer.mlp.act_fn = counting()  # a copy of it counts too
    instrument(model)
    model(**inputs_of(model))  # nobody records
    counts = [len(calls)]
    for _ in range(3):
        with record() as trace:
            model(**inputs_of(model))
        counts.append(len(calls) - sum(counts))
        assert output_error(trace) == 0
    assert counts == [2, 4, 2, 2]
    with record() as trace:
        copy.deepcopy(model)(**inputs_of(model))
    assert trace.verification is not None


@pytest.mark.parametrize("family", ["t5", "vit", "gpt-oss"])
@pytest.mark.parametrize(("dtype", "implementation"), [(torch.float16, "sdpa"), (torch.bfloat16, "eager")])
def test_rounding_is_no_alarm(family: str, dtype: torch.dtype, implementation: str) -> None:
    model = in_memory(family).to(dtype)
    if model._supports_sdpa:
        model.set_attn_implementation(implementation)
    inputs = {name: x.to(dtype) if x.is_floating_point() else x for name, x in inputs_of(model).items()}
    instrument(model)
    with torch.no_grad(), record() as trace:
        model(**inputs)
    assert output_error(trace) < 1


def test_passes_that_say_nothing_leave_the_check_to_the_next() -> None:
    model = in_memory("bert", hidden_dropout_prob=0.5)
    instrument(model)
    for edits, reason in (({}, "training"), ({"encoder.0.self": off(1)}, "edited")):
        with record() as trace, intervene(edits):
            model.train(not edits)(**inputs_of(model))
        assert reason in str(trace.verification)
    with record() as trace, intervene({}):  # as the lab runs a model of which no head is off
        model.to(torch.bfloat16)(**inputs_of(model))
    assert output_error(trace) < 1, "rounding is no alarm"


def test_random_numbers_and_hooks_of_the_user_are_left_alone() -> None:
    model, seen = in_memory("bert"), list[int]()
    model.encoder.layer[0].register_forward_hook(lambda *_: seen.append(1))
    model.encoder.layer[1].register_forward_hook(lambda _layer, _inputs, output: output * 2)
    instrument(model)
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    with record() as trace:
        model(**inputs_of(model))
    assert torch.equal(torch.rand(2), expected)
    assert output_error(trace) < 1


@pytest.mark.parametrize("family", ["llama", "bart", "gpt-oss", "albert", "deberta", "diffllama"])
def test_the_report_names_errors_of_output_maps_and_values(family: str) -> None:
    model = in_memory(family)
    is_instrumented = family in ("llama", "bart")
    if is_instrumented:
        instrument(model)
    state = {name: weight.clone() for name, weight in model.state_dict().items()}
    report = verify(model, **inputs_of(model))
    assert number(report.output_error) < 1e-5
    assert family == "diffllama" or number(report.map_error) < 1e-5, "eager gives its two softmaxes"
    assert family == "deberta" or number(report.value_error) < 1e-5, "its own code is recorded as maps alone"
    assert hasattr(model, "attention_before") is is_instrumented
    assert all(torch.equal(weight, state[name]) for name, weight in model.state_dict().items())


INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("expected", "got", "error"),
    [
        ([[3.0, 4.0], [0.0, 0.0]], [[3.0, 4.0], [0.0, 2.5]], 1.0),  # 2.5 of a mean norm of 2.5
        ([[3.0, 4.0], [3.0, 4.0]], [[3.0, 4.0], [3.0, 14.0]], 1.0),  # 10 of 5 + 5
        ([[3.0, NAN], [3.0, 4.0]], [[3.0, 9.0], [3.0, 4.0]], 0.0),  # no number without the recording
        ([[3.0, -INF], [3.0, 4.0]], [[3.0, -INF], [3.0, 4.0]], 0.0),
        ([[3.0, -INF], [3.0, 4.0]], [[3.0, INF], [3.0, 4.0]], INF),
        ([[3.0, 4.0], [3.0, 4.0]], [[3.0, NAN], [3.0, 4.0]], INF),
        ([[], []], [[], []], 0.0),
    ],
)
def test_errors_are_those_of_vectors_and_numbers_that_appear_or_vanish_count(
    expected: list[list[float]], got: list[list[float]], error: float
) -> None:
    assert vector_error(torch.tensor(expected), torch.tensor(got), None) == pytest.approx(error)
    ones, padded = torch.ones(1, 2, 4), torch.ones(1, 2, 4)
    padded[0, 1] = 7
    assert vector_error(ones, padded, torch.tensor([[True, False]])) == 0
    assert vector_error(ones, padded, None) == pytest.approx(6 / 2)


# The first recorded pass: what changes a model is noticed, and what both passes compute is computed once.

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

    monkeypatch.setattr(AttentionCall, "weights", changed)
    model = in_memory("bert")
    errors = verify(model, **inputs_of(model)).map_errors
    assert errors["encoder.0.self"] < 1e-5 < 1e-4 < errors["encoder.1.self"]


@pytest.mark.parametrize("is_inference", [False, True])
def test_a_product_that_a_model_changes_is_not_taken_over(is_inference: bool) -> None:
    model = in_memory("bert")
    for layer in model.encoder.layer:
        layer.intermediate.intermediate_act_fn = type("Tripled", (nn.Module,), {"forward": lambda _, x: x.mul_(3)})()
    inputs = inputs_of(model)
    with torch.no_grad():
        expected = model(**inputs)[0]
    instrument(model)
    with torch.no_grad(), torch.inference_mode(is_inference), record() as trace:
        torch.testing.assert_close(model(**inputs)[0], expected)
    assert output_error(trace) == 0


@torch.no_grad()
def test_a_product_with_other_weights_is_not_taken_over() -> None:
    products, x = Products(), torch.randn(3, 2)
    changed = [nn.Parameter(torch.randn(2, 2))]
    with torch.inference_mode():  # where torch does not count changes
        changed.append(nn.Parameter(torch.randn(2, 2)))

    def check() -> None:
        freed = (nn.Parameter(torch.randn(2, 2)) for _ in range(20))  # as offloading does: their ids are used again
        for weight in (*changed, *freed):
            torch.testing.assert_close(F.linear(x, weight, None), x @ weight.T)

    with products:
        check()
    with torch.inference_mode():
        for weight in changed:
            weight.mul_(2)
    with products.again():
        check()


def test_a_product_that_exceeds_the_memory_is_not_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("viz_core.hub.twins._MOST_STORED", 1000)
    products, weights = Products(), [nn.Parameter(torch.randn(size, 2)) for size in (500, 2)]
    with torch.inference_mode(), products:
        for weight in weights:
            F.linear(torch.randn(3, 2), weight, None)
    assert [each.product.shape for [each] in products._stored.values()] == [(3, 2)]


def test_a_pass_that_fails_leaves_no_products(monkeypatch: pytest.MonkeyPatch) -> None:
    model, created = in_memory("bert"), list[Products]()
    monkeypatch.setattr("viz_core.hub.first_pass.Products", lambda: created.append(Products()) or created[-1])
    instrument(model)
    model.encoder.layer[1].register_forward_hook(lambda *_: 1 // 0)
    with record():
        for _ in range(2):
            with pytest.raises(ZeroDivisionError):
                model(**inputs_of(model))
        assert [len(each._stored) for each in created] == [0, 0]


def interrupt(*_: Any) -> None:
    raise KeyboardInterrupt


def test_a_pass_that_changes_weights_or_ends_early_is_not_verified() -> None:
    contextvars.copy_context().run(_end_passes_early)  # leaves what an ended pass leaves behind to this test alone


def _end_passes_early() -> None:
    model, inputs = in_memory("bert"), inputs_of(in_memory("bert"))
    instrument(model)
    hook = model.encoder.layer[1].register_forward_hook(interrupt)
    other = in_memory("bert")
    instrument(other)
    for following in (other, model):
        model.attention_check.report = None
        with record(), pytest.raises(KeyboardInterrupt):
            model(**inputs)
        assert call_layer(nn.Linear(2, 2), "encoder.0") == "encoder.0", "nothing of it is left to other layers"
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
