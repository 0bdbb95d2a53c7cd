"""The one way from queries and keys to weights, and linear attention in closed form: loops, torch, gradients."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode

from tests.viz_core.trace.attention_cases import B, H, K, Q, random_bias, tensors, with_an_empty_row
from tests.viz_core.view.attention_groups import make_group, read_requests
from viz_core.attention.linear import LinearOperator
from viz_core.maps.measures import scaled_rows, total_variation, weight_shares
from viz_core.trace import AttentionCall, attend, attention_weights, record
from viz_core.trace.linear_rule import LinearRule
from viz_core.trace.weights import causal_mask
from viz_core.view.components import view_words
from viz_core.view.computed_maps import ComputedMaps
from viz_core.view.payload import View
from viz_core.view.requests import MapRequest, in_signed_bytes
from viz_core.view.responses import answer


@pytest.mark.parametrize(("heads", "num_queries", "num_keys"), [(0, 3, 4), (2, 0, 4), (2, 3, 0), (2, 0, 0)])
def test_nothing_asked_is_nothing_found(heads: int, num_queries: int, num_keys: int) -> None:
    found = attention_weights(torch.ones(1, heads, num_queries, 5), torch.ones(1, heads, num_keys, 5), causal=True)
    assert found.shape == (1, heads, num_queries, num_keys)


def test_a_number_that_is_none_is_not_hidden() -> None:
    """Only a row that sees nothing is zeros; a model whose numbers overflowed shows that they did."""
    queries, keys, _ = tensors()
    queries[0, 0, 1, 0] = torch.nan
    found = attention_weights(queries, keys, with_an_empty_row())
    assert bool(found[0, 0, 1].isnan().all())
    assert bool(found[1, :, 2].eq(0).all())
    assert int(found.isnan().sum()) == K


@pytest.mark.parametrize("number", [0.0, torch.inf, -torch.inf, torch.nan])
@pytest.mark.parametrize(("num_queries", "num_keys"), [(3, 5), (5, 5), (5, 3), (1, 4)])
def test_a_causal_mask_hides_later_keys_whatever_they_are(num_queries: int, num_keys: int, number: float) -> None:
    queries, keys = torch.rand(2, 3, num_queries, 4), torch.rand(2, 3, num_keys, 4)
    keys[0, :, -1] = number
    found = attention_weights(queries, keys, causal=True)
    torch.testing.assert_close(
        found,
        attention_weights(queries, keys, causal_mask(num_queries, num_keys)[None, None]),
        equal_nan=True,
        atol=1e-6,
        rtol=0,
    )
    assert not bool(found[:, :, :-1].isnan().any())


# Gradients

EMPTY = {
    "mask": {"mask": with_an_empty_row()},
    "bias of -inf": {"bias": random_bias(B, 1, Q, K).double().masked_fill(~with_an_empty_row(), -torch.inf)},
    "causal": {"causal": True},
    "soft cap": {"softcap": 0.8, "mask": with_an_empty_row()},
    "grouped": {"bias": random_bias(1, H, Q, K).double(), "softcap": 2.0},
}


def doubles(**sizes: int) -> tuple[Tensor, Tensor, Tensor]:
    queries, keys, values = (t.double().requires_grad_() for t in tensors(**sizes))
    return queries, keys, values


@pytest.mark.parametrize("case", EMPTY)
def test_gradients_are_those_of_finite_differences(case: str) -> None:
    queries, keys, _ = doubles(heads=2, key_heads=1 if case == "grouped" else 2)
    options = {name: value[:, :2] if name == "bias" else value for name, value in EMPTY[case].items()}
    assert torch.autograd.gradcheck(lambda q, k: attention_weights(q, k, **options), (queries, keys), fast_mode=True)


@pytest.mark.parametrize("path", ["softcap", "differentiable"])
@pytest.mark.parametrize("case", ["mask", "bias of -inf"])
def test_a_query_that_sees_nothing_gives_and_gets_zeros(path: str, case: str) -> None:
    leaves = [t.clone().requires_grad_() for t in tensors()]
    with record(differentiable=path == "differentiable") as trace:
        output = attend(*leaves, **EMPTY[case], softcap=0.9 if path == "softcap" else None)
    assert torch.equal(trace["attention.0"].weights()[1, :, 2], torch.zeros(H, K))
    output.square().sum().backward()
    for leaf in leaves:
        assert leaf.grad is not None
        assert bool(leaf.grad.isfinite().all())
        assert float(leaf.grad.abs().sum()) > 0
    assert leaves[0].grad is not None
    assert torch.equal(leaves[0].grad[1, :, 2], torch.zeros(H, leaves[0].shape[-1]))


# What is built on the way


class Largest(TorchDispatchMode):
    """The most elements that any tensor made in this block has."""

    def __init__(self) -> None:
        super().__init__()
        self.elements = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if isinstance(made, Tensor):
            self.elements = max(self.elements, made.numel())
        return made


@pytest.mark.parametrize("causal", [False, True])
def test_one_cell_of_a_long_map_builds_one_row(causal: bool) -> None:
    n, d = 4_096, 4
    queries, keys = torch.randn(1, 2, n, d), torch.randn(1, 2, n, d)
    with record() as trace:
        attend(queries, keys, keys, causal=causal)
    with Largest() as largest:
        cell = trace["attention.0"].weights(head=1, queries=slice(3_000, 3_001), keys=slice(4, 5))
    seen = keys[:, 1, : 3_001 if causal else n]
    expected = torch.softmax(queries[:, 1, 3_000] @ seen[0].T * d**-0.5, dim=-1)[:, 4]
    torch.testing.assert_close(cell[:, 0, 0], expected, atol=1e-8, rtol=1e-4)
    assert largest.elements == n * d  # the keys, as they are kept, are the largest tensor met


@pytest.mark.parametrize(("num_queries", "num_keys"), [(4, 4), (3, 5), (5, 3), (1, 4)])
def test_a_causal_mask_of_some_rows_is_those_rows_of_it(num_queries: int, num_keys: int) -> None:
    whole = torch.ones(num_queries, num_keys).tril(num_keys - num_queries).bool()
    assert torch.equal(causal_mask(num_queries, num_keys), whole)
    for rows in (slice(0, 1), slice(1, 3), slice(0, None, 2), slice(2, 2)):
        assert torch.equal(causal_mask(num_queries, num_keys, rows=rows), whole[rows])


def rule(n: int, *, erases: bool, seed: int = 0, groups: int = 2, heads: int = 4, strong: float = 1.0) -> LinearRule:
    draw = torch.Generator().manual_seed(seed)
    queries, keys = (torch.randn(2, groups, n, 5, generator=draw) for _ in range(2))
    keys = torch.nn.functional.normalize(keys, dim=-1)
    return LinearRule(
        queries,
        keys,
        None,
        None,
        True,
        0.5,
        values=torch.randn(2, heads, n, 3, generator=draw),
        rule="rule",
        log_decay=-strong * torch.rand(2, heads, n, generator=draw),
        strength=torch.rand(2, heads, n, generator=draw),
        skip=torch.randn(heads, generator=draw),
        erases=erases,
    )


def by_recurrence(source: LinearRule) -> Tensor:
    """The rule step by step, by the library's own layer, in float64."""
    assert source.log_decay is not None
    assert source.strength is not None
    assert source.values is not None
    assert source.skip is not None
    group = source.shape[1] // source.queries.shape[1]
    queries, keys = (each.double().repeat_interleave(group, dim=1) for each in (source.queries, source.keys))
    values = source.values.double()
    layer = LinearOperator(
        source.scale * queries, keys, source.log_decay.double(), source.strength.double(), erases=source.erases
    )
    return layer.recurrent(values) + source.skip.double()[:, None, None] * values


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(1, 150),
    erases=st.booleans(),
    seed=st.integers(0, 1000),
    groups=st.sampled_from([1, 2, 4]),
    strong=st.sampled_from([0.0, 0.1, 30.0]),
)
def test_the_map_times_values_is_the_recurrence(n: int, erases: bool, seed: int, groups: int, strong: float) -> None:
    source = rule(n, erases=erases, seed=seed, groups=groups, strong=strong)
    weights = source.rows(slice(0, 4), slice(0, n))
    assert source.values is not None
    torch.testing.assert_close(weights @ source.values, by_recurrence(source).float(), atol=2e-6, rtol=1e-5)


@settings(max_examples=25, deadline=None)
@given(
    start=st.integers(0, 149),
    size=st.integers(1, 150),
    step=st.integers(1, 70),
    head=st.integers(0, 3),
    e=st.booleans(),
)
def test_a_tile_is_part_of_the_map(start: int, size: int, step: int, head: int, e: bool) -> None:
    call = AttentionCall("decoder.0.self", rule(150, erases=e))
    rows = slice(start, start + size, step)
    tile = call.weights(head=head, queries=rows, keys=slice(10, 90))
    torch.testing.assert_close(tile, call.weights()[:, head, rows, 10:90], atol=1e-7, rtol=1e-5)


def test_numbers_worked_by_hand() -> None:
    """Two equal keys of length 1: the second write of strength 1 erases the first, unless the rule only adds."""
    ones, no_decay = torch.ones(1, 1, 2, 1), torch.zeros(1, 1, 2)
    for erases, expected in ((True, [[1.0, 0.0], [0.0, 1.0]]), (False, [[1.0, 0.0], [1.0, 1.0]])):
        source = LinearRule(ones, ones, None, None, True, 1.0, log_decay=no_decay, erases=erases)
        assert source.rows(slice(0, 1), slice(0, 2))[0, 0].tolist() == expected
    half = LinearRule(ones, ones, None, None, True, 1.0, log_decay=no_decay, strength=no_decay + 0.5, erases=True)
    assert half.rows(slice(0, 1), slice(0, 2))[0, 0].tolist() == [[0.5, 0.0], [0.25, 0.5]]
    halved = LinearRule(ones, -ones, None, None, True, 1.0, log_decay=no_decay + torch.tensor(0.5).log())
    torch.testing.assert_close(halved.rows(slice(0, 1), slice(0, 2))[0, 0], torch.tensor([[-1.0, 0.0], [-0.5, -1.0]]))


def test_long_decays_neither_overflow_nor_fade() -> None:
    source = rule(2000, erases=False, strong=60.0)
    assert bool(torch.isfinite(source.rows(slice(0, 1), slice(1990, 2000))).all())
    constant = LinearRule(
        torch.ones(1, 1, 3000, 1),
        torch.ones(1, 1, 3000, 1),
        None,
        None,
        True,
        1.0,
        log_decay=torch.full((1, 1, 3000), -1.0),
    )
    last = constant.rows(slice(0, 1), slice(2999, 3000))[0, 0, 0]
    torch.testing.assert_close(last[-3:], torch.tensor([-2.0, -1.0, 0.0]).exp())


def test_shares_of_signed_weights() -> None:
    weights = torch.tensor([[1.0, -3.0], [0.0, 0.0]])
    assert weight_shares(weights).tolist() == [[0.25, 0.75], [0.0, 0.0]]


def test_changes_of_signed_maps_are_between_rows_whose_sizes_sum_to_1() -> None:
    assert scaled_rows(torch.tensor([[1.0, -3.0], [0.0, 0.0]])).tolist() == [[0.25, -0.75], [0.0, 0.0]]
    source = rule(6, erases=True)
    opposite = replace(source, queries=-2 * source.queries, skip=None)
    calls = [AttentionCall("decoder.0.self", each) for each in (replace(source, skip=None), source, opposite)]
    groups = [make_group(6, 6, "self", calls=(call,)) for call in calls]
    view = View(groups[:1], view_words(), groups[1:2], ("a", "b"))
    (change,) = read_requests("change 0 self 0")
    (found,) = answer(view.group, [change]).values()
    first, second = (call.weights()[0] / call.weights()[0].abs().sum(dim=-1, keepdim=True) for call in calls[:2])
    torch.testing.assert_close(torch.tensor(found.notes["changes"]), total_variation(first, second))
    turned = View(groups[:1], view_words(), groups[2:], ("a", "b"))
    (found,) = answer(turned.group, [change]).values()
    torch.testing.assert_close(torch.tensor(found.notes["changes"]), torch.ones(4))


def test_thumbnails_keep_the_weight_of_the_largest_size() -> None:
    call = AttentionCall("decoder.0.self", rule(150, erases=True))
    whole, small = call.weights(), call.overview(size=3)
    blocks = whole.unflatten(-1, (3, 50)).unflatten(2, (3, 50)).permute(0, 1, 2, 4, 3, 5).flatten(-2)
    expected = blocks.gather(-1, blocks.abs().argmax(dim=-1, keepdim=True))[..., 0]
    assert torch.equal(small, expected)
    assert float(small.min()) < 0 < float(small.max())
    coded, most = in_signed_bytes(small)
    steps = coded.float() - 128
    assert most == float(small.abs().max())
    torch.testing.assert_close(steps.sign() * (steps / 127) ** 2 * most, small, atol=most / 100, rtol=0)
    tile = ComputedMaps((call,)).cells(MapRequest(((0, 1),)), range(150), range(150), (50, 50))
    assert torch.equal(tile, expected[0, 1])
