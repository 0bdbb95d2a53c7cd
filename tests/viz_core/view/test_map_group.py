import importlib.util

import pytest
import torch

from tests.viz_core.view.attention_groups import make_group
from viz_core.maps.fingerprints import measure_layer
from viz_core.trace import attend, record, record_weights


def test_thumbnails_are_the_overview_in_eight_bits():
    group = make_group(80, 70)
    for layer, call in enumerate(group.calls):
        thumbnails = group.picture(layer).thumbnails
        assert thumbnails.shape == (3, 64, 64)
        # One byte is round(255 sqrt(w)): half a step of it either way.
        expected = call.overview(64)[0].sqrt()
        torch.testing.assert_close(thumbnails / 255, expected, atol=0.5 / 255 + 1e-6, rtol=0)


@pytest.mark.parametrize(
    ("tokens", "heads", "size"),
    [(80, 96, 64), (80, 97, 48), (80, 170, 48), (80, 171, 32), (80, 1024, 32), (50, 144, 50), (20, 1000, 20)],
)
def test_many_heads_have_smaller_thumbnails(tokens, heads, size):
    group = make_group(tokens, tokens, "self", layers=1, heads=heads)
    assert min(tokens, group.thumbnail_size) == size
    thumbnails = group.picture(0).thumbnails
    assert thumbnails.shape == (heads, size, size)
    assert thumbnails.numel() <= 384 * 1024 or group.thumbnail_size == 32


def test_small_weights_keep_a_byte_of_their_own():
    with record() as trace:
        flat = torch.zeros(1, 1, 300, 8)
        attend(flat, flat, flat, site="encoder.0.self")
    tokens = tuple(map(str, range(300)))
    group = make_group(300, 300, "self", query_tokens=tokens, key_tokens=tokens, calls=tuple(trace))
    assert group.picture(0).thumbnails.unique().tolist() == [15]  # 255 sqrt(1/300) = 14.7; linearly it were 1


def test_fingerprints_are_those_of_the_layer():
    group = make_group(6, 6, "self", key_tokens=("a", "b", "[SEP]", "c", "</s>", "."))
    assert group.separators == (2, 4)
    expected = measure_layer(group.calls[1], separators=(2, 4)).fingerprints
    assert group.picture(1).fingerprints == expected


def test_cross_maps_are_of_two_sequences_even_if_equally_long():
    assert make_group(6, 6, "self").on_itself
    assert not make_group(6, 6, "cross").on_itself
    assert not make_group(6, 5, "self").on_itself
    assert make_group(6, 6, "cross").picture(0).fingerprints[0].get("diagonal") is None


def test_row_picks_the_sentence_of_a_batch():
    with record() as trace:
        queries, keys = torch.randn(2, 3, 5, 8), torch.randn(2, 3, 7, 8)
        attend(queries, keys, keys, site="decoder.0.cross")
    group = make_group(5, 7, calls=tuple(trace), row=1)
    expected = trace["decoder.0.cross"].overview(64)[1].sqrt()
    torch.testing.assert_close(group.picture(0).thumbnails / 255, expected, atol=0.5 / 255 + 1e-6, rtol=0)


def test_pictures_are_computed_once_and_when_asked_for():
    group = make_group(5, 7)
    assert not group.has_picture(1)
    assert group.picture(1) is group.picture(1)
    assert group.has_picture(1)
    assert not group.has_picture(0)


def test_no_two_groups_share_a_stamp():
    assert make_group(5, 7).stamp != make_group(5, 7).stamp


def test_a_restarted_process_gives_no_stamp_again():
    """A browser that holds the base of a stamp shows its tokens, whoever sent them."""

    def first_stamp():  # of a process that has just imported the library
        spec = importlib.util.find_spec("viz_core.view.map_group")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        group = make_group(5, 7)
        return module.MapGroup("x", "X", "q", "k", group.query_tokens, group.key_tokens, group.calls).stamp

    assert first_stamp() != first_stamp()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"name": "cross.self"}, "id: expected"),
        ({"name": ""}, "id: expected"),
        ({"calls": ()}, "at least one layer"),
        ({"query_tokens": ("one",)}, "expected 5 for queries and 7 for keys as in decoder.0.cross, got 1 and 7"),
        ({"row": 1}, "row of 'cross': expected 0 to 0, got 1"),
        ({"key_words": (0, 0)}, "key_words of 'cross': expected one for each of 7 tokens, got 2"),
    ],
)
def test_wrong_groups_are_refused_with_what_was_expected(changes, message):
    with pytest.raises(ValueError, match=message):
        make_group(5, 7, **({"name": "cross"} | changes))


def test_rows_are_held_to_their_sum_in_every_layer():
    sound = make_group(6, 6, "self", layers=3)
    assert 0 <= sound.row_error < 1e-5
    weights = torch.full((1, 3, 6, 6), 1 / 6)
    weights[0, 1, 4] = 0.25
    with record() as trace:
        record_weights(weights, "decoder.3.self")
    broken = make_group(6, 6, "self", calls=(*sound.calls, *trace))
    assert broken.row_error == pytest.approx(0.5)
    assert all(broken.has_picture(layer) for layer in range(4))  # what was read for it is the grid's
