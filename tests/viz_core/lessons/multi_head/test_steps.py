"""Every tensor on the way through multi-head attention, against plain loops, torch's module and the layer itself."""

from __future__ import annotations

import inspect
import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from viz_core.attention import MultiHeadAttention
from viz_core.lessons.multi_head import steps as steps_module
from viz_core.lessons.multi_head.broken import residuals
from viz_core.lessons.multi_head.steps import (
    fresh_layer,
    multi_head_steps,
    random_tokens,
    rounding_bound,
    torch_multi_head,
    walk_residual,
)


@settings(max_examples=25)
@given(st.integers(1, 6), st.integers(1, 5), st.integers(1, 9), st.integers(1, 3), st.booleans())
def test_steps_layer_and_torch_agree_for_any_size(heads: int, width: int, n: int, batch: int, bias: bool) -> None:
    layer, X = MultiHeadAttention(heads * width, heads, bias=bias), torch.randn(batch, n, heads * width)
    steps = multi_head_steps(layer, X)
    assert max(*residuals(layer, steps), walk_residual(layer, steps)) < 1e-6


def test_the_book_s_shapes_and_every_entry_by_loop() -> None:
    """The book: 100 hidden units, 5 heads, 2 sequences of 4 tokens."""
    layer, X = MultiHeadAttention(100, 5), torch.randn(2, 4, 100)
    steps = multi_head_steps(layer, X)
    assert {name: tuple(tensor.shape) for name, tensor in steps.tensors().items()} == {
        **dict.fromkeys(("input", "queries", "keys", "values", "concatenated", "output"), (2, 4, 100)),
        **dict.fromkeys(("split_queries", "split_keys", "split_values", "attended"), (2, 5, 4, 20)),
        **dict.fromkeys(("scores", "masked", "exponentials", "weights"), (2, 5, 4, 4)),
    }
    for b in range(2):
        for h in range(5):
            own = slice(20 * h, 20 * h + 20)
            q, k, v = (X[b] @ linear.weight[own].T for linear in (layer.W_q, layer.W_k, layer.W_v))
            torch.testing.assert_close(steps.split_queries[b, h], q, atol=1e-5, rtol=0)
            torch.testing.assert_close(steps.split_keys[b, h], k, atol=1e-5, rtol=0)
            torch.testing.assert_close(steps.split_values[b, h], v, atol=1e-5, rtol=0)
            weights = torch.softmax(q @ k.T / 20**0.5, dim=-1)
            torch.testing.assert_close(steps.weights[b, h], weights, atol=1e-6, rtol=0)
            torch.testing.assert_close(steps.attended[b, h], weights @ v, atol=1e-5, rtol=0)
            torch.testing.assert_close(steps.concatenated[b, :, own], weights @ v, atol=1e-5, rtol=0)
    torch.testing.assert_close(torch.softmax(steps.scores, -1), steps.weights, atol=1e-6, rtol=0)


def test_torchs_module_has_our_parameters_stacked() -> None:
    ours = MultiHeadAttention(6, 3, bias=True).double().eval()
    theirs = torch_multi_head(ours)
    assert isinstance(theirs, nn.MultiheadAttention)
    assert torch.equal(theirs.in_proj_weight, torch.cat([ours.W_q.weight, ours.W_k.weight, ours.W_v.weight]))
    assert torch.equal(theirs.in_proj_bias, torch.cat([ours.W_q.bias, ours.W_k.bias, ours.W_v.bias]))
    assert torch.equal(theirs.out_proj.weight, ours.W_o.weight)
    assert torch.equal(theirs.out_proj.bias, ours.W_o.bias)
    assert theirs.in_proj_weight.dtype == torch.float64
    assert not theirs.training
    assert torch_multi_head(MultiHeadAttention(6, 3)).in_proj_bias is None


def test_a_wrong_layer_is_noticed() -> None:
    """The residuals can fail: torch's own weights changed, or a step that is not the layer's."""
    layer, X = MultiHeadAttention(8, 2), torch.randn(1, 5, 8)
    steps = multi_head_steps(layer, X)
    with torch.no_grad():
        layer.W_o.weight.add_(0.1)
    assert walk_residual(layer, steps) > 1e-3


def test_masked_softmax_step_by_step() -> None:
    layer, X = MultiHeadAttention(8, 2), torch.randn(2, 5, 8)
    steps = multi_head_steps(layer, X, causal=True)
    ahead = torch.ones(5, 5).triu(1).bool().expand(2, 2, 5, 5)
    assert bool((steps.masked[ahead] == -torch.inf).all())
    assert torch.equal(steps.masked[~ahead], steps.scores[~ahead])
    assert torch.equal(steps.exponentials.amax(-1), torch.ones(2, 2, 5))
    assert bool((steps.weights[ahead] == 0).all())
    torch.testing.assert_close(steps.weights, steps.call.weights(), atol=1e-6, rtol=0)
    assert walk_residual(layer, steps) < 1e-6
    assert rounding_bound(steps) < 1e-4
    assert torch.equal(multi_head_steps(layer, X).masked, multi_head_steps(layer, X).scores)


SOURCE = inspect.getsource(multi_head_steps)
START = SOURCE.rindex('"""')  # of the code, after the words
LEFT = ", ".join(re.findall(r"^    (\w+(?:, \w+)*) = ", SOURCE[START:], re.MULTILINE))
MADE = [name for name in LEFT.split(", ") if name not in {"softmax", "n"}]


def test_every_step_is_one_that_can_be_broken() -> None:
    assert len(MADE) == len(multi_head_steps(MultiHeadAttention(4, 2), torch.randn(1, 3, 4)).tensors()) - 1  # the input


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("name", MADE)
def test_a_wrong_step_does_not_arrive_where_the_layer_does(name: str, causal: bool) -> None:
    """The walk's own code, with one line after the step that adds noise to it."""
    line = re.search(rf"^    (?:\w+, )*{name}(?:, \w+)* = .*\n", SOURCE[START:], re.MULTILINE)
    assert line is not None
    after = START + line.end()
    wrong = SOURCE[:after] + f"    {name} = {name} + torch.rand_like({name})\n" + SOURCE[after:]
    scope = dict(vars(steps_module))
    exec(compile("from __future__ import annotations\n" + wrong, "wrong", "exec"), scope)
    layer, X = MultiHeadAttention(8, 2), torch.randn(2, 5, 8)
    assert walk_residual(layer, multi_head_steps(layer, X, causal)) < 1e-6
    assert walk_residual(layer, scope["multi_head_steps"](layer, X, causal)) > 1e-3


@pytest.mark.parametrize(("width", "heads", "sharpness"), [(8, 8, 8.0), (64, 8, 2.0), (512, 1, 8.0), (512, 64, 8.0)])
def test_rounding_stays_within_its_bound_and_the_bound_stays_small(width: int, heads: int, sharpness: float) -> None:
    layer, X = fresh_layer(width, heads, sharpness), random_tokens(64, width).X[None]
    steps = multi_head_steps(layer, X)
    bound = rounding_bound(steps)
    assert max(*residuals(layer, steps), walk_residual(layer, steps)) <= bound
    assert bound < 1e-3 * float(steps.output.abs().max())
