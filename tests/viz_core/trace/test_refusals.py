"""What is refused, why a recording is empty, and torch's private names with what other libraries put in their place."""

import re
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import pytest
import torch
import torch.nn.attention.bias
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from tests.viz_core.hub.families import in_memory, inputs_of
from viz_core import torch_internals
from viz_core import trace as tracing
from viz_core.attention import AdditiveAttention, MultiHeadAttention
from viz_core.hub import instrument
from viz_core.models import TransformerEncoder
from viz_core.torch_internals import missing, private

X = torch.randn(3, 1, 2, 4, 5)
ADDITIVE = AdditiveAttention(5, 5, 5)
MASKS = torch.ones(3, 1, 1, 4, 4, dtype=torch.bool)
TRANSFORMS: dict[str, Callable[[], Any]] = {
    "vmap": lambda: torch.func.vmap(lambda x: tracing.attend(x, x, x))(X),
    "vmap with a soft cap": lambda: torch.func.vmap(lambda x: tracing.attend(x, x, x, softcap=0.5))(X),
    "vmap over masks alone": lambda: torch.func.vmap(lambda mask: tracing.attend(X[0], X[0], X[0], mask=mask))(MASKS),
    "vmap over given weights": lambda: torch.func.vmap(lambda x: ADDITIVE(x, x, x))(X[:, 0]),
    "grad": lambda: torch.func.grad(lambda x: tracing.attend(x, x, x).sum())(X[0]),
}


@pytest.mark.parametrize("differentiable", [False, True])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms_are_refused_within_record_and_work_without(name: str, differentiable: bool) -> None:
    assert TRANSFORMS[name]().isfinite().all()
    with tracing.record(differentiable) as trace:
        with pytest.raises(ValueError, match="a layer without a name: torch.func"):
            TRANSFORMS[name]()
        assert trace.sites == ()
        tracing.attend(X[0], X[0], X[0])
    assert trace.sites == ("attention.0",)


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_edits_of_a_checkpointed_layer_and_the_recording_of_its_second_run_are_refused(use_reentrant: bool) -> None:
    layer, inputs = MultiHeadAttention(8, 2), torch.randn(2, 5, 8, requires_grad=True)
    tracing.name_site(layer, "encoder.0.self")

    def run(x: Tensor) -> Tensor:
        return layer(x, x, x)

    def checkpointed() -> Tensor:
        out: Tensor = checkpoint(run, inputs, use_reentrant=use_reentrant).sin().sum()
        return out

    (expected,) = torch.autograd.grad(run(inputs).sin().sum(), [inputs])
    with tracing.record() as trace:
        loss = checkpointed()
    assert trace.sites == ("encoder.0.self",)
    loss.backward()  # outside the block: the gradients of what was run
    assert inputs.grad is not None
    torch.testing.assert_close(inputs.grad, expected)
    edits = {"encoder.0.self": tracing.off(1)}
    with pytest.raises(ValueError, match=r"encoder\.0\.self.*checkpointing"), tracing.intervene(edits):
        checkpointed()
    for block in (tracing.record(), tracing.intervene(edits)):
        loss = checkpointed()
        with pytest.raises(ValueError, match=r"encoder\.0\.self.*second run"), block:
            loss.backward()


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_a_checkpointed_layer_of_plain_pytorch(use_reentrant: bool) -> None:
    """torch runs a layer again without this thread's modes: one recording, and no second run that could be edited."""
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), 1)
    inputs, edits = torch.randn(2, 5, 8, requires_grad=True), {"encoder.0.self": tracing.off(1)}
    with tracing.record(torch_calls=model) as trace:
        checkpoint(model, inputs, use_reentrant=use_reentrant).sum().backward()
    assert trace.sites == ("encoder.0.self",)
    with pytest.raises(ValueError, match=r"encoder\.0\.self.*checkpointing"), tracing.intervene(edits, model):
        checkpoint(model, inputs, use_reentrant=use_reentrant)
    loss = checkpoint(model, inputs, use_reentrant=use_reentrant).sum()
    with pytest.raises(ValueError, match="there was none"), tracing.intervene(edits, model):
        loss.backward()


def test_states_of_a_checkpointed_layer_are_refused() -> None:
    model = TransformerEncoder(19, 12, 20, 3, 1, 0.0).train()
    ids = torch.randint(0, 19, (2, 6))

    def run() -> Tensor:
        out: Tensor = checkpoint(lambda: model(ids, None), use_reentrant=False)
        return out

    edits = {"encoder.0.residual": tracing.patch_state(torch.zeros(2, 6, 12))}
    with pytest.raises(ValueError, match=r"encoder\.0\.residual.*checkpointing"), tracing.intervene(edits):
        run()
    loss = run().sum()
    with tracing.record(states=True), pytest.raises(ValueError, match=r"encoder\.0'.*second run"):
        loss.backward()


class Head(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return (x @ x.mT).softmax(-1) @ x


class Attention(Head):
    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).softmax(-1)


class Block(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: Tensor) -> Tensor:
        return self.inner(x)


@pytest.mark.parametrize("head", [Head, Attention])
def test_plain_layers_that_are_not_known(head: type[nn.Module]) -> None:
    """The class of one does not say that it is attention; the other is in no numbered list."""
    model = nn.Sequential(Block(head())) if head is Head else Block(head())
    with pytest.warns(UserWarning, match=rf"nothing was.*inner \({head.__name__}\)"), tracing.record(torch_calls=model):
        model(torch.randn(1, 4, 8))


@pytest.mark.parametrize("set_it", ["set_attn_implementation", "_attn_implementation"])
def test_attention_that_was_set_after_instrument(set_it: str) -> None:
    model: Any = in_memory("llama")
    instrument(model)
    if set_it == "set_attn_implementation":
        model.set_attn_implementation("sdpa")
    else:
        model.config._attn_implementation = "sdpa"
    with pytest.warns(UserWarning, match=r"set to sdpa after instrument\(model\)"), tracing.record():
        model(**inputs_of(model))
    other = in_memory("llama")
    with pytest.warns(UserWarning, match="was not called for .*LlamaForCausalLM"), tracing.record():
        other(**inputs_of(other))
    instrument(model)
    with warnings.catch_warnings(), tracing.record() as trace:
        warnings.simplefilter("error")
        model(**inputs_of(model))
    assert len(trace) == 2


HEADS, WIDTH, SITE = 3, 4, "encoder.0.self"
QUERIES = torch.randn(1, HEADS, 5, WIDTH)


def call_of(heads: int = HEADS, batch: int = 1) -> tracing.AttentionCall:
    x = torch.randn(batch, heads, 4, WIDTH)
    with tracing.record() as trace:
        tracing.attend(x, x, x)
    return trace[0]


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: tracing.off(), "heads"),
        (lambda: tracing.sharpen(0, 0.0), "temperature"),
        (lambda: tracing.pattern(0, "next"), "expected one of diagonal, previous, first"),
        (lambda: tracing.pattern(0, torch.ones(2, 2)), "rows that sum to 1"),
        (lambda: tracing.knock_out(0, query=-1), "query"),
        (lambda: tracing.knock_out(0, key=slice(-2, None)), "key"),
        (lambda: tracing.window(0, 0), "size: expected at least 1, got 0"),
        (lambda: tracing.mean(4, torch.zeros(4, 2)), "a row for each"),
        (lambda: tracing.patch(HEADS, call_of()), "as 'attention.0' has"),
        (lambda: tracing.patch(0, call_of(), "values"), "'weights' or 'output'"),
        (lambda: tracing.patch(0, call_of(), "output"), "values=True"),
        (lambda: 3, r"expected edits such as off(3), got int"),
        # What fits no call of this size.
        (lambda: tracing.off(3), "expected heads 0 to 2, got"),
        (lambda: tracing.zero(), "expected an edit of heads, got one of a state"),
        (lambda: tracing.gate([0, 1, 2], torch.tensor([0.0, 0.5])), "one for each of heads"),
        (lambda: tracing.gate(None, torch.tensor([0.0, 0.5])), "a factor for each of 3 heads in a batch of 1"),
        (lambda: tracing.mean(None, torch.zeros(2, WIDTH)), "a mean for each of 3 heads"),
        (lambda: tracing.mean(0, torch.zeros(3, WIDTH + 1)), "4 wide"),
        (lambda: tracing.patch(None, call_of(heads=2)), "for 3 heads"),
        (lambda: tracing.patch(0, call_of(batch=2)), "a batch of 1"),
    ],
)
def test_edits_that_make_no_sense_or_do_not_fit(make: Callable[[], Any], why: str, shapes_unchecked: None) -> None:
    with pytest.raises(ValueError, match=re.escape(why)), tracing.intervene({SITE: make()}):
        tracing.attend(QUERIES, QUERIES, QUERIES, site=SITE)


@pytest.mark.parametrize(
    ("edits", "why"),
    [
        (
            {"encoder.9.mlp": tracing.zero()},
            "no attention or state at encoder.9.mlp in this block; there was encoder.0",
        ),
        ({"encoder.0.mlp": [tracing.zero(), tracing.off(1)]}, "expected an edit of a state"),
        (
            {"encoder.0.mlp": tracing.patch_state(torch.ones(2, 4, 12))},
            "encoder.0.mlp: expected (2, 6, 12), got (2, 4, 12)",
        ),
    ],
)
def test_edits_that_fit_no_state(edits: Any, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)), tracing.intervene(edits):
        TransformerEncoder(19, 12, 20, 3, 1, 0.0)(torch.randint(0, 19, (2, 6)))


def test_edits_of_other_attention_and_errors_of_the_block_itself() -> None:
    with pytest.raises(RuntimeError, match="of its own"), tracing.intervene({"here": tracing.off(0)}):
        raise RuntimeError("of its own, and not hidden by what was never met")
    with (
        pytest.raises(ValueError, match="scaled dot-product attention"),
        tracing.intervene({"attention.0": tracing.off(0)}),
    ):
        ADDITIVE(*torch.randn(3, 1, 4, 5))
    with tracing.record() as trace:
        pass
    with pytest.raises(KeyError, match=r"record\(states=True\)"):
        trace.states["encoder.0.residual"]


@pytest.fixture(autouse=True)
def torch_has_its_own_again() -> Iterator[None]:
    own = torch.overrides.has_torch_function
    yield
    torch.overrides.has_torch_function = own


def counting(inner: Callable[[Iterable[Any]], bool]) -> Any:
    def patched(tensors: Iterable[Any]) -> bool:
        patched.calls += 1
        return inner(tensors)

    patched.calls = 0
    return patched


def test_a_patch_made_within_a_block_stays_and_works() -> None:
    with tracing.record(torch_calls=True):
        theirs = torch.overrides.has_torch_function = counting(torch.overrides.has_torch_function)
    assert torch.overrides.has_torch_function is theirs
    assert not torch.overrides.has_torch_function([torch.ones(1)])
    assert theirs.calls == 1
    with tracing.record(torch_calls=True):
        assert not torch.overrides.has_torch_function([torch.ones(1)])
    assert theirs.calls == 2
    assert torch.overrides.has_torch_function is theirs


def test_this_version_of_torch_has_every_name() -> None:
    assert len(torch_internals._NAMES) > 8
    assert all(map(torch_internals._is_loaded, torch_internals._NAMES.values()))
    assert missing() == []


def test_a_missing_name_is_reported_once_with_what_no_longer_works(monkeypatch: pytest.MonkeyPatch) -> None:
    name = torch_internals._NAMES["torch.overrides:_pop_mode"]
    monkeypatch.delattr(torch.overrides, "_pop_mode")
    assert missing() == [name]
    torch_internals.warn_missing.cache_clear()
    with pytest.warns(RuntimeWarning, match=f"has no torch.overrides._pop_mode, so {name.without[:9]}"):
        torch_internals.warn_missing()
    torch_internals.warn_missing()
    with pytest.raises(RuntimeError, match=r"has no torch\.overrides\._gone, so recording does not work"):
        private("torch.overrides:_gone", "recording")()


def test_a_recording_works_and_warns_without_the_names_it_can_do_without() -> None:
    program = (
        "import warnings, torch\n"
        "del torch._C._functorch.is_functorch_wrapped_tensor, torch._C._current_graph_task_id\n"
        "warnings.simplefilter('always')\n"
        "from viz_core.trace import attend, record\n"
        "with record() as trace: attend(*[torch.ones(1, 1, 2, 4)] * 3)\n"
        "print(trace.sites)"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.stdout.strip() == "('attention.0',)", run.stderr
    assert "has no torch._C._functorch.is_functorch_wrapped_tensor, so refusing torch.func" in run.stderr
    assert "has no torch._C._current_graph_task_id, so" in run.stderr
