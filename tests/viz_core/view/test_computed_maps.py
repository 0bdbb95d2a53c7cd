"""Parts of maps against whole ones: heads combined, words merged, tiles pooled."""

import pytest
import torch
import torch.nn.functional as F

from tests.viz_core.trace.test_linear_rule import rule
from tests.viz_core.view.attention_groups import make_group
from viz_core.maps.word_maps import merge_words
from viz_core.trace import AttentionCall
from viz_core.view.computed_maps import ComputedMaps
from viz_core.view.requests import KeysRequest, MapRequest, PartError, RowsRequest

WORDS = {"query_words": (0, 0, 1, 2, 2), "key_words": (0, 1, 1, 1, 2, 3, 3)}


def test_one_head_is_the_calls_own_map():
    group = make_group(5, 7)
    whole = group.maps.whole(MapRequest(((1, 2),)))
    assert torch.equal(whole, group.calls[1].weights(head=2)[0])


@pytest.mark.parametrize("how", ["mean", "max"])
def test_several_heads_are_combined(how):
    group = make_group(5, 7)
    heads = torch.stack([group.calls[0].weights(head=0)[0], group.calls[1].weights(head=2)[0]])
    expected = heads.mean(dim=0) if how == "mean" else heads.amax(dim=0)
    torch.testing.assert_close(group.maps.whole(MapRequest(((0, 0), (1, 2)), how)), expected)


def test_words_are_merged_whole_or_in_parts():
    group = make_group(5, 7, **WORDS)
    wanted = MapRequest(((0, 1),), words=True)
    expected = merge_words(group.calls[0].weights(head=1)[0], WORDS["query_words"], WORDS["key_words"])
    assert group.maps.size(words=True) == (3, 4)
    torch.testing.assert_close(group.maps.whole(wanted), expected)
    torch.testing.assert_close(group.maps.cells(wanted, range(1, 3), range(1, 3)), expected[1:3, 1:3])


@pytest.mark.parametrize("block", [1, 2**22])
@pytest.mark.parametrize("pool", [(1, 1), (2, 2), (4, 1), (8, 16)])
def test_parts_are_the_largest_of_every_bunch(pool, block, monkeypatch):
    monkeypatch.setattr("viz_core.view.computed_maps._BLOCK_WEIGHTS", block)
    group = make_group(21, 34)
    wanted = MapRequest(((0, 0), (0, 1)))
    whole = group.maps.whole(wanted)[8:21, 16:34]
    part = group.maps.cells(wanted, range(8, 21), range(16, 34), pool)
    torch.testing.assert_close(part, F.max_pool2d(whole[None], pool, ceil_mode=True)[0])


@pytest.mark.parametrize("words", [False, True])
def test_strips_put_together_are_the_whole_map(words):
    group = make_group(5, 7, **WORDS)
    wanted = MapRequest(((0, 1), (1, 2)), words=words)
    whole = group.maps.whole(wanted)
    rows, columns = whole.shape
    strips = group.maps.parts([RowsRequest(wanted, 0, 2, 0, columns), RowsRequest(wanted, 2, rows - 2, 0, columns)])
    assert [strip.kind for strip in strips] == ["exact", "exact"]
    torch.testing.assert_close(torch.cat([torch.from_numpy(strip.array) for strip in strips]), whole)
    (part,) = group.maps.parts([RowsRequest(wanted, 1, 1, 2, 1)])
    torch.testing.assert_close(torch.from_numpy(part.array), whole[1:2, 2:3])


@pytest.mark.parametrize("place", [(0, 6, 0, 7), (0, 1, 1, 7), (0, 0, 0, 7), (0, 5, 0, 0), (5, 1, 0, 1)])
def test_rows_that_are_not_there_are_refused(place):
    (refused,) = make_group(5, 7).maps.parts([RowsRequest(MapRequest(((0, 0),)), *place)])
    assert isinstance(refused, PartError)
    assert "rows: expected some of a map of 5 x 7" in str(refused)


def test_no_more_rows_than_fit_an_answer(monkeypatch):
    monkeypatch.setattr("viz_core.view.computed_maps.STRIP_WEIGHTS", 20)
    fits, over = make_group(5, 7).maps.parts([RowsRequest(MapRequest(((0, 0),)), 0, n, 0, 7) for n in (2, 3)])
    assert fits.array.shape == (2, 7)
    assert "rows: expected at most 20 weights, got 21" in str(over)


def test_heads_that_are_not_there_are_refused():
    with pytest.raises(PartError, match="heads: expected heads that there are, got layer 0, head 3"):
        make_group(5, 7).maps.whole(MapRequest(((0, 3),)))


def test_weights_on_each_key_and_the_queries_that_give_them_most(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("viz_core.view.computed_maps._BLOCK_WEIGHTS", 100)
    signed = AttentionCall("decoder.1.self", rule(30, erases=True))
    group = make_group(30, 30, "self", layers=1, heads=4)
    maps = ComputedMaps((group.calls[0], signed))
    for layer, call in enumerate(maps.calls):
        (part,) = maps.parts([KeysRequest(layer)])
        weights = call.weights()[0]
        shares = weights.abs() / weights.abs().sum(dim=-1, keepdim=True)
        found = torch.from_numpy(part.array)
        torch.testing.assert_close(found[:, 0], shares.mean(dim=1), atol=1e-6, rtol=1e-5)
        assert torch.equal(found[:, 1].long(), shares.argmax(dim=1))
    (error,) = maps.parts([KeysRequest(2)])
    assert isinstance(error, PartError)
