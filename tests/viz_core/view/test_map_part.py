"""Parts of maps against whole ones: heads combined, words merged, tiles pooled."""

import pytest
import torch
import torch.nn.functional as F

from tests.viz_core.view.attention_groups import make_group
from viz_core.maps.words import merge_words
from viz_core.view.map_part import MapName, map_part, map_size, read_map_name, whole_map

WORDS = {"query_words": (0, 0, 1, 2, 2), "key_words": (0, 1, 1, 1, 2, 3, 3)}


@pytest.mark.parametrize(
    "name",
    [
        MapName(0, "cross", ((2, 5),)),
        MapName(1, "decoder-self", ((0, 1), (0, 2), (11, 0)), "max", True),
    ],
)
def test_names_are_read_back(name):
    assert read_map_name(str(name)) == name


def test_a_name_as_it_is_written():
    assert str(MapName(0, "cross", ((2, 5), (2, 6)))) == "0.cross:2.5_2.6:mean:tokens"


@pytest.mark.parametrize(
    "text",
    ["", "0.cross:2.5:mean", "2.cross:2.5:mean:tokens", "0.cross:2:mean:tokens", "0.cross:2.5_:mean:tokens",
     "0.cross:2.5:sum:tokens", "0.../x:2.5:mean:tokens", "0.cross:2.٥:mean:tokens", "0.cross:2.5:mean:tokens\n"],
)  # fmt: skip
def test_what_is_no_name_is_none(text):
    assert read_map_name(text) is None


def test_one_head_is_the_calls_own_map():
    group = make_group(5, 7)
    whole = whole_map(group, MapName(0, "cross", ((1, 2),)))
    assert torch.equal(whole, group.calls[1].weights(head=2)[0])


@pytest.mark.parametrize("how", ["mean", "max"])
def test_several_heads_are_combined(how):
    group = make_group(5, 7)
    heads = torch.stack([group.calls[0].weights(head=0)[0], group.calls[1].weights(head=2)[0]])
    expected = heads.mean(dim=0) if how == "mean" else heads.amax(dim=0)
    torch.testing.assert_close(whole_map(group, MapName(0, "cross", ((0, 0), (1, 2)), how)), expected)


def test_words_are_merged_whole_or_in_parts():
    group = make_group(5, 7, **WORDS)
    name = MapName(0, "cross", ((0, 1),), words=True)
    expected = merge_words(group.calls[0].weights(head=1)[0], WORDS["query_words"], WORDS["key_words"])
    assert map_size(group, words=True) == (3, 4)
    torch.testing.assert_close(whole_map(group, name), expected)
    torch.testing.assert_close(map_part(group, name, range(1, 3), range(1, 3)), expected[1:3, 1:3])


@pytest.mark.parametrize("block", [1, 2**22])
@pytest.mark.parametrize("pool", [(1, 1), (2, 2), (4, 1), (8, 16)])
def test_parts_are_the_largest_of_every_bunch(pool, block, monkeypatch):
    monkeypatch.setattr("viz_core.view.map_part._BLOCK_WEIGHTS", block)
    group = make_group(21, 34)
    name = MapName(0, "cross", ((0, 0), (0, 1)))
    whole = whole_map(group, name)[8:21, 16:34]
    part = map_part(group, name, range(8, 21), range(16, 34), pool)
    torch.testing.assert_close(part, F.max_pool2d(whole[None], pool, ceil_mode=True)[0])


def test_heads_that_are_not_there_are_refused():
    with pytest.raises(ValueError, match="heads of 'cross', got layer 0, head 3"):
        whole_map(make_group(5, 7), MapName(0, "cross", ((0, 3),)))
