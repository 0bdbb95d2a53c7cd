"""Recording leaves models as they were: what a first pass and a report say, and copies that share weights."""

import copy
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.viz_core.hub.conftest import deepseek_v4
from tests.viz_core.hub.families import build, in_memory, inputs_of
from tests.viz_core.trace.test_precision import OwnAttention
from viz_core.hub import instrument, load_hub, restore, verify
from viz_core.hub.attention import ATTENTION_IMPLEMENTATION
from viz_core.hub.twins import shared_copy
from viz_core.trace import Trace, intervene, off, record
from viz_core.trace.verification import _vector_error as vector_error

IDS = torch.randint(3, 110, (2, 12), generator=torch.Generator().manual_seed(1))


def number(error: float | None) -> float:
    """The error; it fails where nothing was compared."""
    assert error is not None
    return error


def output_error(trace: Trace) -> float:
    assert trace.verification is not None
    return number(trace.verification.output_error)


@pytest.fixture
def boolean_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give every model the masks of fused attention, whatever it had: what changed DeepSeek V4."""
    monkeypatch.setattr(
        sys.modules["viz_core.hub.instrument"], "implementation_for", lambda *_: ATTENTION_IMPLEMENTATION
    )


@pytest.mark.parametrize("padded", [False, True])
def test_a_layer_that_computes_with_its_mask_is_given_the_one_it_had(padded: bool) -> None:
    model = deepseek_v4(rate=2)
    mask = torch.ones_like(IDS)
    mask[0, 10:] = 1 - padded
    with torch.no_grad():
        expected = model(IDS, attention_mask=mask, use_cache=False)[0]
    instrument(model)
    with torch.no_grad(), record() as trace:
        found = model(IDS, attention_mask=mask, use_cache=False)[0]
    torch.testing.assert_close(found[mask.bool()], expected[mask.bool()], atol=1e-5, rtol=0)
    assert output_error(trace) < 1e-5


@pytest.mark.usefixtures("boolean_masks")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_changed_model_is_refused_each_time_and_nothing_is_shown(dtype: torch.dtype) -> None:
    model = deepseek_v4(rate=2).to(dtype)
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
    assert trace.verification is not None
    assert "verify=False" in repr(trace)


def test_only_the_first_pass_is_run_twice() -> None:
    model = in_memory("llama")
    calls = list[int]()
    original = type(model.model.layers[0].mlp).forward

    class Counting(type(model.model.layers[0].mlp)):  # type: ignore[misc]  # a copy of it counts too
        def forward(self, x: Tensor) -> Tensor:
            calls.append(1)
            return original(self, x)  # type: ignore[no-any-return]

    model.model.layers[0].mlp.__class__ = Counting
    instrument(model)
    model(**inputs_of(model))
    assert len(calls) == 1  # nobody records
    counts = []
    for _ in range(3):
        calls.clear()
        with record() as trace:
            model(**inputs_of(model))
        counts.append(len(calls))
        assert output_error(trace) == 0
    assert counts == [2, 1, 1]
    with record() as trace:
        copy.deepcopy(model)(**inputs_of(model))
    assert trace.verification is not None


@pytest.mark.parametrize("family", ["t5", "vit", "gpt-oss"])
@pytest.mark.parametrize(("dtype", "implementation"), [(torch.float16, "sdpa"), (torch.bfloat16, "eager")])
def test_rounding_is_no_alarm(family: str, dtype: torch.dtype, implementation: str) -> None:
    model = in_memory(family).to(dtype)
    inputs = {name: x.to(dtype) if x.is_floating_point() else x for name, x in inputs_of(model).items()}
    if "input_ids" in inputs:
        inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
        inputs["attention_mask"][0, -3:] = 0
    if model._supports_sdpa or implementation == "eager":
        model.set_attn_implementation(implementation)
    instrument(model)
    with torch.no_grad(), record() as trace:
        model(**inputs)
    assert output_error(trace) < 1


def test_passes_that_say_nothing_leave_the_check_to_the_next() -> None:
    model = in_memory("bert", hidden_dropout_prob=0.5)
    instrument(model)
    with record() as trace:
        model.train()(**inputs_of(model))
    assert "training" in str(trace.verification)
    model.eval()
    with record() as trace, intervene({"encoder.0.self": off(1)}):
        model(**inputs_of(model))
    assert "edited" in str(trace.verification)
    with record() as trace, intervene({}):  # as the lab runs a model of which no head is off
        model(**inputs_of(model))
    assert output_error(trace) == 0


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


def test_an_encoder_and_a_decoder_that_generate_are_both_checked() -> None:
    model = in_memory("t5")
    instrument(model)
    with torch.no_grad(), record() as trace:
        model.generate(IDS[:, :6], max_new_tokens=3)
    assert output_error(trace) < 1
    assert model.encoder.attention_check.report is not None
    assert model.attention_check.report is not None


@pytest.mark.parametrize("family", ["llama", "bart", "gpt-oss", "albert", "deberta", "diffllama"])
@pytest.mark.parametrize("is_instrumented", [False, True])
def test_the_report_names_errors_of_output_maps_and_values(family: str, is_instrumented: bool) -> None:
    model = in_memory(family)
    if is_instrumented:
        instrument(model)
    state = {name: weight.clone() for name, weight in model.state_dict().items()}
    report = verify(model, **inputs_of(model))
    assert number(report.output_error) < 1e-5
    assert family == "diffllama" or number(report.map_error) < 1e-5, "eager gives its two softmaxes"
    assert family == "deberta" or number(report.value_error) < 1e-5, "its own code is recorded as maps alone"
    assert hasattr(model, "attention_before") is is_instrumented
    assert all(torch.equal(weight, state[name]) for name, weight in model.state_dict().items())


def test_the_report_of_plain_pytorch_and_of_a_changed_model(monkeypatch: pytest.MonkeyPatch) -> None:
    report = verify(nn.Sequential(OwnAttention("plain"), OwnAttention("plain")), torch.randn(2, 5, 32))
    assert report.output_error == 0
    assert set(report.value_errors) == {"encoder.0.self", "encoder.1.self"}
    assert number(report.value_error) < 1e-6
    monkeypatch.setattr(
        sys.modules["viz_core.hub.instrument"], "implementation_for", lambda *_: ATTENTION_IMPLEMENTATION
    )
    changed = verify(deepseek_v4(rate=2), input_ids=IDS, use_cache=False)
    assert number(changed.output_error) > 0.1
    with pytest.raises(ValueError, match="expected a model"):
        verify("bert")


@pytest.mark.parametrize("family", ["bert", "albert", "gpt-oss"])
def test_a_model_of_the_hub_says_what_was_verified_and_what_it_does_not_know(family: str, tmp_path: Path) -> None:
    build(family, tmp_path / family)
    model = load_hub(tmp_path / family, device="cpu")
    for text in ("the cat sat on the mat", "the mat"):
        verified = model.run(text, max_new_tokens=2 if family == "gpt-oss" else None).trace.verification
        assert verified is not None
        assert number(verified.output_error) < 1e-5
        assert number(verified.map_error) < 1e-5
        assert "maps equal eager" in str(verified)
    if family == "bert":
        with pytest.warns(UserWarning, match="not in its vocabulary"):
            run = model.run("我 我 我 我 我 我")
        assert f"{run.num_unknown} unknown" in repr(run)


class Remembering(nn.Module):
    """It counts its passes, keeps its last sum, and calls one of its methods by an attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.projections = nn.ModuleList([nn.Linear(2, 2), nn.Linear(2, 2)])
        self.seen = [0]
        self.rule = self.doubled
        self.register_buffer("last", torch.zeros(1))

    def doubled(self, x: Tensor) -> Tensor:
        self.seen[0] += 1
        self.last += 1
        return 2 * x

    def forward(self, x: Tensor) -> Tensor:
        return self.rule(self.projections[1](self.projections[0](x)))  # type: ignore[no-any-return]


class CopiesItself(nn.Linear):
    """A quantised layer has such a rule."""

    def __deepcopy__(self, memo: dict[int, Any]) -> "CopiesItself":
        made = CopiesItself(2, 2)
        made.weight, made.bias = self.weight, self.bias
        made.copied = True
        return made


def test_a_copy_shares_weights_and_nothing_that_a_pass_changes() -> None:
    model, x = nn.Sequential(Remembering(), CopiesItself(2, 2)), torch.randn(3, 2)
    expected = model(x)
    seen = list[int]()
    model[0].projections[1].register_forward_hook(lambda *_: seen.append(1))
    twin, copies = shared_copy(model)
    assert torch.equal(twin(x), expected)
    assert not seen
    assert model[0].seen == [1]
    assert twin[0].seen == [2]
    assert float(model[0].last) == 1
    assert all(one is other for one, other in zip(model.parameters(), twin.parameters(), strict=True))
    assert twin[0].projections[0] is model[0].projections[0], "it changes nothing"
    assert twin[0].projections[1] is not model[0].projections[1], "it has a hook"
    assert twin[1].copied
    assert copies[id(model[0])] is twin[0]
    twin[0].projections.append(nn.Identity())
    assert len(model[0].projections) == 2
    model(x)
    assert seen == [1]


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


def test_vectors_at_padding_do_not_count() -> None:
    expected, got, tokens = torch.ones(1, 2, 4), torch.ones(1, 2, 4), torch.tensor([[True, False]])
    got[0, 1] = 7
    assert vector_error(expected, got, tokens) == 0
    assert vector_error(expected, got, torch.zeros(1, 2, dtype=torch.bool)) == 0
    assert vector_error(expected, got, None) == pytest.approx(6 / 2)
