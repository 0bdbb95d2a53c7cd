"""Linear attention in closed form, against its recurrence and numbers worked by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.viz_core.view.attention_groups import make_group, read_requests
from viz_core.attention.linear import LinearOperator
from viz_core.maps.measures import scaled_rows, total_variation, weight_shares
from viz_core.trace import AttentionCall
from viz_core.trace.linear_rule import LinearRule
from viz_core.view.components import view_words
from viz_core.view.computed_maps import ComputedMaps
from viz_core.view.payload import View
from viz_core.view.requests import MapRequest, in_signed_bytes
from viz_core.view.responses import answer


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


def test_scores_are_refused() -> None:
    with pytest.raises(ValueError, match="expected weights that are the softmax of scores, got a rule"):
        rule(3, erases=True).scores(slice(0, 1), slice(0, 3))


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
