"""torch.compile and the recorder, in an interpreter of its own: `test_compiling.py` runs this file.

There nothing checks shapes around the library, which would be compiled along with it.
"""

from __future__ import annotations

import copy
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.viz_core.positional.scheme_cases import HEAD_DIM, HEADS, LENGTH, SCHEMES
from tests.viz_core.trace.attention_cases import H, K, Q, random_bias, random_mask, tensors
from viz_core.attention import AdditiveAttention, MultiHeadAttention
from viz_core.hub.attention import attention_forward
from viz_core.hub.custom_attention import add_hooks
from viz_core.models import TransformerDecoder, TransformerEncoder, ViT
from viz_core.torch_internals import compiler
from viz_core.trace import Trace, attend, no_recording, record
from viz_core.trace.sites import name_site

WIDTH = HEADS * HEAD_DIM
SIZES = (19, 12, 20, 3, 1, 0.0)


@pytest.fixture(autouse=True)
def nothing_compiled() -> Iterator[None]:
    """Nothing that another test compiled or held back, and the same numbers in every test."""
    torch._dynamo.reset()
    stance = torch._dynamo.eval_frame._stance
    torch.manual_seed(0)
    yield
    assert torch._dynamo.eval_frame._stance is stance
    assert type(stance) is torch._dynamo.eval_frame.DynamoStance


@pytest.fixture
def compiler_unseen(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the compiler were loaded only later."""
    monkeypatch.setattr(compiler, "sys", SimpleNamespace(modules={}))


class Graphs:
    """A backend that counts the graphs it makes, and how often each is run."""

    def __init__(self) -> None:
        self.made = self.runs = 0

    def __call__(self, graph: torch.fx.GraphModule, _: list[Tensor]) -> Callable[..., Any]:
        self.made += 1

        def run(*args: Any) -> Any:
            self.runs += 1
            return graph.forward(*args)

        return run


def whole(fn: Callable[..., Any], backend: Any = "eager") -> Callable[..., Any]:
    """Compiled as one graph, or an error."""
    return torch.compile(fn, fullgraph=True, backend=backend)


CALLS: dict[str, dict[str, Any]] = {
    "plain": {},
    "causal": {"causal": True},
    "masked": {"mask": random_mask(1, H, Q, K), "bias": random_bias(1, H, Q, K), "causal": True},
    "softcap": {"softcap": 0.5, "scale": 0.3},
}


@pytest.mark.parametrize("name", CALLS)
def test_attend_is_one_graph(name: str) -> None:
    inputs = tensors(key_heads=H // 2)
    compiled = whole(lambda q, k, v: attend(q, k, v, **CALLS[name]))
    torch.testing.assert_close(compiled(*inputs), attend(*inputs, **CALLS[name]))


@pytest.mark.parametrize("name", SCHEMES)
def test_a_layer_is_one_graph_under_every_scheme(name: str) -> None:
    layer = MultiHeadAttention(WIDTH, HEADS, positions=SCHEMES[name](), num_key_heads=2, window=3).eval()
    X, lengths = torch.randn(2, 6, WIDTH), torch.tensor([6, 2])
    torch.testing.assert_close(whole(layer)(X, X, X, lengths, causal=True), layer(X, X, X, lengths, causal=True))


@pytest.mark.parametrize("name", ["rotary", "alibi", "t5", "relative"])
def test_a_layer_is_exported_for_any_size(name: str) -> None:
    layer = MultiHeadAttention(WIDTH, HEADS, positions=SCHEMES[name](), num_key_heads=2, window=3).eval()

    def inputs(batch: int, n: int) -> tuple[Tensor, ...]:
        X = torch.randn(batch, n, WIDTH)
        return X, X, X, torch.randint(1, n, (batch,))

    batch, n = torch.export.Dim("batch"), torch.export.Dim("n", max=LENGTH)
    sizes = [{0: batch, 1: n}] * 3 + [{0: batch}]
    exported = torch.export.export(layer, inputs(2, 6), dynamic_shapes=sizes).module()
    for others in (inputs(2, 6), inputs(3, 8)):
        torch.testing.assert_close(exported(*others), layer(*others))


@pytest.mark.parametrize("softcap", [None, 0.5])
def test_two_graphs_serve_every_length(softcap: float | None) -> None:
    """One for the first length and one for all others: else torch gives up after eight, whole graphs with an error."""
    torch._dynamo.reset()
    layer, graphs = MultiHeadAttention(WIDTH, HEADS, num_key_heads=2, window=3, softcap=softcap).eval(), Graphs()
    compiled = whole(layer, graphs)
    for n in range(3, 8):
        X = torch.randn(2, n, WIDTH)
        torch.testing.assert_close(compiled(X, X, X, causal=True), layer(X, X, X, causal=True))
    assert graphs.made == 2


def encoder() -> tuple[nn.Module, tuple[Any, ...]]:
    return TransformerEncoder(*SIZES).eval(), (torch.randint(0, 19, (2, 6)), torch.tensor([6, 3]))


STACKS: dict[str, Callable[[], tuple[nn.Module, tuple[Any, ...]]]] = {
    "encoder": encoder,
    "vit": lambda: (ViT(12, 4, 16, 24, 2, 1, 0.0, 0.0).eval(), (torch.randn(2, 3, 12, 12),)),
    "additive": lambda: (AdditiveAttention(8, 8, 8), (torch.randn(2, 3, 8),) * 3),
}


def same(trace: Trace, other: Trace) -> None:
    assert trace.sites == other.sites
    for one, two in zip(trace, other, strict=True):
        assert torch.equal(one.weights(), two.weights())


@pytest.mark.parametrize("name", STACKS)
def test_one_graph_before_a_recording_and_after_and_none_within(name: str) -> None:
    model, inputs = STACKS[name]()
    with record() as expected_trace:
        expected = model(*inputs)
    graphs = Graphs()
    compiled = whole(model, graphs)
    torch.testing.assert_close(compiled(*inputs), expected)
    for _ in range(2):
        with record() as trace:
            assert torch.equal(compiled(*inputs), expected)
        same(trace, expected_trace)
    assert (graphs.made, graphs.runs) == (1, 1)
    torch.testing.assert_close(compiled(*inputs), expected)
    assert (graphs.made, graphs.runs) == (1, 2)


def test_gradients_through_the_backward_graph_too() -> None:
    model, inputs = encoder()
    compiled = whole(model, "aot_eager")
    parameters = list(model.parameters())
    expected = torch.autograd.grad(model(*inputs).square().sum(), parameters)
    torch.testing.assert_close(torch.autograd.grad(compiled(*inputs).square().sum(), parameters), expected)
    with record() as trace:
        torch.testing.assert_close(torch.autograd.grad(compiled(*inputs).square().sum(), parameters), expected)
    assert trace.sites == ("encoder.0.self",)


def test_weights_of_a_compiled_model_in_the_graph() -> None:
    model, inputs = encoder()
    compiled = whole(model)
    compiled(*inputs)
    grads = []
    for run in (model, compiled):
        with record(differentiable=True) as trace:
            out = run(*inputs)
        grads.append(torch.autograd.grad(out[..., 0].sum(), [trace["encoder.0.self"].graph_weights])[0])
    assert torch.equal(*grads)


def test_a_decoder_step_is_one_graph() -> None:
    decoder = TransformerDecoder(*SIZES).eval()
    state = decoder.init_state(torch.randn(2, 4, 12))
    ids = torch.randint(0, 19, (2, 3))
    expected, after = decoder(ids, state)
    compiled = whole(decoder)
    found, state = compiled(ids, state)
    torch.testing.assert_close(found, expected)
    torch.testing.assert_close(compiled(ids[:, :1], state)[0], decoder(ids[:, :1], after)[0])


def test_a_part_that_is_compiled_in_place() -> None:
    model, inputs = encoder()
    with record() as plain:
        expected = model(*inputs)
    model.blocks[0].attention.compile(backend="eager", fullgraph=True)
    with record() as trace:
        assert torch.equal(model(*inputs), expected)
    same(trace, plain)


@contextmanager
def another_thread_records() -> Iterator[list[tuple[str, ...]]]:
    """While it lasts; then the sites it sites."""
    started, done = threading.Event(), threading.Event()
    sites: list[tuple[str, ...]] = []

    def listen() -> None:
        with record() as trace:
            started.set()
            done.wait(60)
        sites.append(trace.sites)

    thread = threading.Thread(target=listen)
    thread.start()
    started.wait(60)
    try:
        yield sites
    finally:
        done.set()
        thread.join()


def test_while_another_thread_records_this_one_runs_its_graphs() -> None:
    model, inputs = encoder()
    expected, graphs = model(*inputs), Graphs()
    compiled = whole(model, graphs)
    with another_thread_records() as sites:
        torch.testing.assert_close(compiled(*inputs), expected)
        with record(), record():  # blocks that end before the other's
            assert torch.equal(compiled(*inputs), expected)
        torch.testing.assert_close(compiled(*inputs), expected)
        assert (graphs.made, graphs.runs) == (1, 2)
    assert sites == [()]
    torch.testing.assert_close(compiled(*inputs), expected)
    assert (graphs.made, graphs.runs) == (1, 3)


@pytest.mark.usefixtures("compiler_unseen")
def test_a_whole_graph_made_while_another_thread_records_from_before_the_compiler_was_loaded() -> None:
    model, inputs = encoder()
    expected, graphs = model(*inputs), Graphs()
    compiled = whole(model, graphs)
    with another_thread_records() as sites:
        torch.testing.assert_close(compiled(*inputs), expected)
    assert sites == [()]
    torch.testing.assert_close(compiled(*inputs), expected)
    assert (graphs.made, graphs.runs) == (1, 2)


def test_a_stance_of_the_caller_s_own_comes_back() -> None:
    with torch.compiler.set_stance("fail_on_recompile"):
        with record():
            pass
        assert torch._dynamo.eval_frame._stance.stance == "fail_on_recompile"


def test_torch_has_its_own_stance_again_after_a_recording() -> None:
    own = torch._dynamo.eval_frame._stance
    with record():
        within = torch._dynamo.eval_frame._stance
        assert within is not own
        for duplicate in (copy.copy(within), copy.deepcopy(within)):
            assert (duplicate.stance, duplicate.backend) == ("force_eager", None)
    assert torch._dynamo.eval_frame._stance is own


def test_a_stance_that_the_caller_sets_within_a_recording_stays() -> None:
    own = torch._dynamo.eval_frame._stance
    with record():
        torch.compiler.set_stance("fail_on_recompile")
    assert torch._dynamo.eval_frame._stance.stance == "fail_on_recompile"
    torch._dynamo.eval_frame._stance = own


def test_the_last_of_several_threads_restores_the_stance() -> None:
    own = torch._dynamo.eval_frame._stance
    with another_thread_records():
        with record():
            pass
        assert torch._dynamo.eval_frame._stance is not own
        assert torch._dynamo.eval_frame._stance.stance == "default"  # in this thread, which does not record
    assert torch._dynamo.eval_frame._stance is own


def test_a_recorder_that_is_itself_compiled() -> None:
    """Nobody may change what the compiler does from within: the graph ends at the recorder."""
    model, inputs = encoder()
    with record() as plain:
        expected = model(*inputs)

    def work(*inputs: Tensor) -> tuple[Tensor, Trace]:
        with record() as trace:
            out = model(*inputs)
        return out * 1, trace

    out, trace = torch.compile(work, backend="eager")(*inputs)
    torch.testing.assert_close(out, expected)
    assert trace.sites == plain.sites
    torch.testing.assert_close(trace["encoder.0.self"].weights(), plain["encoder.0.self"].weights())


@pytest.mark.usefixtures("compiler_unseen")
def test_compiled_for_the_first_time_while_somebody_records() -> None:
    model, inputs = encoder()
    with record() as plain:
        expected = model(*inputs)
    compiled = torch.compile(model, backend="eager")
    for _ in range(2):
        with record() as trace:
            torch.testing.assert_close(compiled(*inputs), expected)
            with no_recording():
                torch.testing.assert_close(compiled(*inputs), expected)
        assert trace.sites == plain.sites
        torch.testing.assert_close(trace["encoder.0.self"].weights(), plain["encoder.0.self"].weights())
    torch.testing.assert_close(compiled(*inputs), expected)


@pytest.mark.usefixtures("compiler_unseen")
def test_one_whole_graph_and_a_recorder_cannot_both_be() -> None:
    compiled = whole(lambda q, k, v: attend(q, k, v))
    with record() as trace, pytest.raises(torch._dynamo.exc.Unsupported, match="expected no fullgraph=True where"):
        compiled(*tensors())
    assert trace.sites == ()
    torch.testing.assert_close(compiled(*tensors()), attend(*tensors()))


class OfTransformers(nn.Module):
    """What a layer of transformers does that passes our door, and one with a softmax of its own."""

    def __init__(self, own: bool) -> None:
        super().__init__()
        self.own = own
        name_site(self, "encoder.0.self")
        if own:
            add_hooks(self)

    def forward(self, X: Tensor) -> Tensor:
        if self.own:
            return (X @ X.mT).softmax(dim=-1) @ X
        return attention_forward(self, X, X, X, None, is_causal=False)[0]


@pytest.mark.parametrize("own", [False, True])
def test_a_layer_that_is_instrumented(own: bool) -> None:
    layer, X = OfTransformers(own), torch.randn(1, 2, 3, 4)
    compiled = torch.compile(layer, backend="eager", fullgraph=True)
    assert torch.equal(compiled(X), layer(X))
    with record() as trace:
        assert torch.equal(compiled(X), layer(X))
    assert trace.sites == ("encoder.0.self", "encoder.0.self@2")
