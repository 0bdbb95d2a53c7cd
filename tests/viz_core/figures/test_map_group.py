import pytest
import torch

from viz_core.analysis import attention_entropy, diagonal_mass
from viz_core.figures.map_group import MapGroup
from viz_core.trace import attend, record


def recorded(num_queries, num_keys, layers=2, heads=3, batch=1):
    torch.manual_seed(0)
    with record() as trace:
        for layer in range(layers):
            queries = torch.randn(batch, heads, num_queries, 8) * 3
            keys = torch.randn(batch, heads, num_keys, 8)
            attend(queries, keys, keys, site=f"decoder.{layer}.cross")
    return tuple(trace)


def group(num_queries=5, num_keys=7, calls=None, **changes):
    fields = {
        "id": "cross",
        "label": "Cross",
        "queries_label": "French",
        "keys_label": "English",
        "query_tokens": tuple(f"q{i}" for i in range(num_queries)),
        "key_tokens": tuple(f"k{i}" for i in range(num_keys)),
        "calls": recorded(num_queries, num_keys) if calls is None else calls,
    }
    return MapGroup(**(fields | changes))


def test_thumbnails_are_the_overview_in_eight_bits():
    maps = group(80, 70)
    for call, picture in zip(maps.calls, maps.pictures, strict=True):
        assert picture.thumbnails.shape == (3, 64, 64)
        torch.testing.assert_close(picture.thumbnails / 255, call.overview(64)[0], atol=0.5 / 255 + 1e-6, rtol=0)


def test_measures_are_means_over_the_exact_map():
    maps = group(6, 6)
    for call, picture in zip(maps.calls, maps.pictures, strict=True):
        weights = call.weights()[0]
        torch.testing.assert_close(torch.tensor(picture.entropy), attention_entropy(weights).mean(dim=-1))
        torch.testing.assert_close(torch.tensor(picture.diagonal), diagonal_mass(weights))


def test_heads_measured_one_by_one_are_measured_the_same(monkeypatch):
    calls = recorded(6, 6)
    together = group(6, 6, calls).pictures
    monkeypatch.setattr("viz_core.figures.map_group._BLOCK_WEIGHTS", 1)
    alone = group(6, 6, calls).pictures
    for a, b in zip(together, alone, strict=True):
        assert a.entropy == pytest.approx(b.entropy)
        assert a.diagonal == pytest.approx(b.diagonal)


def test_maps_that_are_not_square_have_no_diagonal():
    assert all(picture.diagonal is None for picture in group(5, 7).pictures)


def test_row_picks_the_sentence_of_a_batch():
    calls = recorded(5, 7, batch=2)
    second = group(calls=calls, row=1).pictures[0].thumbnails
    torch.testing.assert_close(second / 255, calls[0].overview(64)[1], atol=0.5 / 255 + 1e-6, rtol=0)


def test_pictures_are_computed_once():
    maps = group()
    assert maps.pictures is maps.pictures


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"id": "cross.self"}, "id: expected"),
        ({"id": ""}, "id: expected"),
        ({"calls": ()}, "at least one layer"),
        ({"query_tokens": ("one",)}, "expected 5 for queries and 7 for keys as in decoder.0.cross, got 1 and 7"),
        ({"row": 1}, "row of 'cross': expected 0 to 0, got 1"),
    ],
)
def test_wrong_groups_are_refused_with_what_was_expected(changes, message):
    with pytest.raises(ValueError, match=message):
        group(**changes)
