"""The one way from queries and keys to weights, steps of a generation as one map, and linear attention by its rule."""

import copy
from dataclasses import replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from tests.viz_core.hub.families import in_memory
from tests.viz_core.trace.attention_cases import (
    CASES,
    B,
    H,
    K,
    Q,
    brute_force,
    random_bias,
    recorded,
    tensors,
    with_an_empty_row,
)
from tests.viz_core.view.attention_groups import make_group, read_requests
from viz_core.attention.linear import LinearOperator
from viz_core.hub import instrument, restore
from viz_core.trace import AttentionCall, Trace, attend, attention_weights, record, record_weights
from viz_core.trace.linear_rule import LinearRule
from viz_core.view import view
from viz_core.view.components import view_words
from viz_core.view.computed_maps import ComputedMaps
from viz_core.view.payload import View
from viz_core.view.requests import MapRequest, in_signed_bytes
from viz_core.view.responses import answer


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
    mask = torch.ones(1, 1, num_queries, num_keys).tril(num_keys - num_queries).bool()
    torch.testing.assert_close(found, attention_weights(queries, keys, mask), equal_nan=True, atol=1e-6, rtol=0)
    assert not bool(found[:, :, :-1].isnan().any())


EMPTY = {
    "mask": {"mask": with_an_empty_row()},
    "bias of -inf": {"bias": random_bias(B, 1, Q, K).double().masked_fill(~with_an_empty_row(), -torch.inf)},
    "causal": {"causal": True},
    "soft cap": {"softcap": 0.8, "mask": with_an_empty_row()},
    "grouped": {"bias": random_bias(1, H, Q, K).double(), "softcap": 2.0},
}


@pytest.mark.parametrize("case", EMPTY)
def test_gradients_are_those_of_finite_differences(case: str) -> None:
    queries, keys, _ = (t.double().requires_grad_() for t in tensors(heads=2, key_heads=1 if case == "grouped" else 2))
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


def by_recurrence(source: Any) -> Tensor:
    group = source.shape[1] // source.queries.shape[1]
    queries, keys = (each.double().repeat_interleave(group, dim=1) for each in (source.queries, source.keys))
    decay, strength, values = source.log_decay.double(), source.strength.double(), source.values.double()
    layer = LinearOperator(source.scale * queries, keys, decay, strength, erases=source.erases)
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
@given(st.integers(0, 149), st.integers(1, 150), st.integers(1, 70), st.integers(0, 3), st.booleans())
def test_a_tile_is_part_of_the_map(start: int, size: int, step: int, head: int, erases: bool) -> None:
    call = AttentionCall("decoder.0.self", rule(150, erases=erases))
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
    ones = torch.ones(1, 1, 3000, 1)
    constant = LinearRule(ones, ones, None, None, True, 1.0, log_decay=-ones[..., 0])
    last = constant.rows(slice(0, 1), slice(2999, 3000))[0, 0, 0]
    torch.testing.assert_close(last[-3:], torch.tensor([-2.0, -1.0, 0.0]).exp())


def test_changes_of_signed_maps_are_between_rows_whose_sizes_sum_to_1() -> None:
    source = replace(rule(6, erases=True), skip=None)
    calls = [AttentionCall("decoder.0.self", each) for each in (source, replace(source, queries=-2 * source.queries))]
    groups = [make_group(6, 6, "self", calls=(call,)) for call in calls]
    view = View(groups[:1], view_words(), groups[1:], ("a", "b"))
    (found,) = answer(view.group, read_requests("change 0 self 0")).values()
    torch.testing.assert_close(torch.tensor(found.notes["changes"]), torch.ones(4))


def test_thumbnails_keep_the_weight_of_the_largest_size() -> None:
    call = AttentionCall("decoder.0.self", rule(150, erases=True))
    small = call.overview(size=3)
    blocks = call.weights().unflatten(-1, (3, 50)).unflatten(2, (3, 50)).permute(0, 1, 2, 4, 3, 5).flatten(-2)
    expected = blocks.gather(-1, blocks.abs().argmax(dim=-1, keepdim=True))[..., 0]
    assert torch.equal(small, expected)
    coded, most = in_signed_bytes(small)
    steps = coded.float() - 128
    torch.testing.assert_close(steps.sign() * (steps / 127) ** 2 * most, small, atol=most / 100, rtol=0)
    tile = ComputedMaps((call,)).cells(MapRequest(((0, 1),)), range(150), range(150), (50, 50))
    assert torch.equal(tile, expected[0, 1])


@pytest.mark.parametrize("case", CASES)
def test_weights_equal_brute_force_and_make_the_output(case: str) -> None:
    (queries, keys, values), options = CASES[case]
    call, output = recorded(case)
    expected = brute_force(queries, keys, **options)
    weights = call.weights()
    assert weights.dtype == torch.float32
    assert (call.num_heads, call.num_queries, call.num_keys) == tuple(expected.shape[1:])
    torch.testing.assert_close(weights.double(), expected, atol=1e-6, rtol=0)
    exact = attention_weights(queries.double(), keys.double(), **options)
    torch.testing.assert_close(exact, expected, atol=1e-12, rtol=0)
    spread = values.double().repeat_interleave(H // values.shape[1], dim=1)
    torch.testing.assert_close(output.double(), expected @ spread, atol=1e-5, rtol=0)


@pytest.mark.parametrize("direct", [False, True])
def test_what_a_reader_does_to_a_map_stays_with_the_reader(direct: bool) -> None:
    with record() as trace:
        if direct:
            record_weights(torch.full((1, 2, 3, 4), 0.25))
        else:
            attend(torch.zeros(1, 2, 3, 5), torch.zeros(1, 2, 4, 5), torch.zeros(1, 2, 4, 5))
    (call,) = trace
    expected = torch.full((1, 2, 3, 4), 0.25)
    for read in (call.weights, call.overview, lambda: call.weights(head=0), lambda: call.weights(keys=slice(0, 2))):
        read().zero_()
        assert torch.equal(call.weights(), expected)


@pytest.mark.parametrize("family", ["gpt2", "llama"])
@torch.no_grad()
def test_a_decoder(family: str) -> None:
    model = in_memory(family)
    instrument(model)
    prompt = torch.tensor([[5, 9, 3, 17], [0, 0, 12, 30]])
    inputs = {"input_ids": prompt, "attention_mask": (prompt > 0).long()}
    with record() as trace:
        ids = model.generate(**inputs, max_new_tokens=5, min_new_tokens=5, do_sample=False, pad_token_id=0)
    assert trace.sites[-1] == "decoder.1.self@5"
    mask = torch.cat([inputs["attention_mask"], torch.ones(2, 4, dtype=torch.long)], dim=1)
    positions = (mask.cumsum(dim=-1) - 1).clamp_min(0)
    with record() as whole:
        model(ids[:, :-1], attention_mask=mask, position_ids=positions)
    found = trace.stitched()
    assert found.sites == ("decoder.0.self", "decoder.1.self")
    for call in found:
        expected = whole[call.site]
        assert torch.equal(call.key_mask, expected.key_mask)
        assert torch.equal(call.query_mask, expected.query_mask)
        for row in range(2):
            torch.testing.assert_close(call.text(row).weights(), expected.text(row).weights(), atol=1e-6, rtol=0)
        tile = call.weights(head=2, queries=slice(2, 7, 2), keys=slice(1, 4))
        torch.testing.assert_close(tile, call.weights()[:, 2, 2:7:2, 1:4])
        assert call.weights(queries=-1).shape == (2, 4, 8)
    assert [(len(group.query_tokens), len(group.key_tokens)) for group in view(trace).groups] == [(8, 8)]


def writer(family: str = "llama", **sizes: object) -> Any:
    model = in_memory(family, **sizes)
    for weight in model.parameters():
        if weight.dim() > 1:
            torch.nn.init.normal_(weight, std=0.2)
    instrument(model)
    return model


PROMPT = torch.tensor([[5, 9, 13, 17, 22, 8]])
WRITING = {"max_new_tokens": 8, "min_new_tokens": 8, "do_sample": False, "pad_token_id": 0}


def assert_one_map(model: Any, found: Trace, ids: torch.Tensor) -> None:
    with torch.no_grad(), record() as whole:
        model(ids[:, :-1])
    assert found.sites == whole.sites
    for call in found:
        torch.testing.assert_close(call.weights(), whole[call.site].weights(), atol=1e-5, rtol=0)
        assert torch.equal(call.key_mask, whole[call.site].key_mask)


@torch.no_grad()
def test_a_beam_search_is_refused_or_followed() -> None:
    model = writer()
    options = {"num_beams": 3, "num_return_sequences": 2, "return_dict_in_generate": True, "output_scores": True}
    with record(values=True) as trace:
        written = model.generate(PROMPT, **WRITING, **options)
    with pytest.raises(ValueError, match="changed places"):
        trace.stitched()
    assert_one_map(model, trace.stitched(beams=written.beam_indices), written.sequences)
    assert_one_map(model, trace.stitched(beams=written.beam_indices[1:].tolist()), written.sequences[1:])


@pytest.mark.parametrize("is_inference", [False, True])  # torch does not count there how often a cache is written over
@pytest.mark.parametrize("cache", ["rejections", "lookup", "static", "window", "static window"])
@torch.no_grad()
def test_any_cache_gives_one_map(cache: str, is_inference: bool) -> None:
    torch.manual_seed(0)
    model = writer("mistral" if cache.endswith("window") else "llama")
    options: dict[str, Any] = {"lookup": {"prompt_lookup_num_tokens": 3}}
    if cache == "rejections":
        helper = copy.deepcopy(model)
        restore(helper)
        for weight in helper.parameters():
            weight += 0.05 * torch.randn_like(weight)
        options[cache] = {"assistant_model": helper}
    if cache.startswith("static"):
        options[cache] = {"cache_implementation": "static", "disable_compile": True}
    with torch.inference_mode(is_inference), record() as trace:
        ids = model.generate(PROMPT, **WRITING, **options.get(cache, {}))
    assert len(trace) > 4
    assert_one_map(model, trace.stitched(), ids)


@torch.no_grad()
def test_two_texts_after_one_another_and_a_step_that_follows_none() -> None:
    model = writer()
    with record() as trace:
        for prompt in (PROMPT, PROMPT.flip(1)):
            model.generate(prompt, **WRITING)
    assert trace.stitched().sites == tuple(f"decoder.{i}.self{again}" for i in (0, 1) for again in ("", "@2"))
    with record() as trace:
        first = model(PROMPT, use_cache=True)
        model(PROMPT.flip(1), use_cache=True)
        model(PROMPT[:, :1], past_key_values=first.past_key_values)
    with pytest.raises(ValueError, match="record a pass over the whole text"):
        trace.stitched()
