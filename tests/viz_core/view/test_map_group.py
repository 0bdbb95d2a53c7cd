"""Groups of maps: thumbnails, fingerprints, parts of maps against whole ones, and results of shipped models."""

import importlib.util
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from benchmarks.view_bytes import decode_view
from tests.viz_core.trace.test_weights import rule
from tests.viz_core.view.attention_groups import make_group
from viz_core.maps.word_maps import merge_words
from viz_core.pretrained import load
from viz_core.trace import AttentionCall, attend, record, record_weights
from viz_core.view.components import view_words
from viz_core.view.computed_maps import ComputedMaps
from viz_core.view.map_group import MapGroup, MapPicture
from viz_core.view.payload import View, encode_view
from viz_core.view.requests import KeysRequest, MapRequest, PartError, Pin, RowsRequest
from viz_core.view.shipped import linked_sentences, open_translation, token_names
from viz_core.view.state import DisplayOptions, ViewState


def test_thumbnails_are_the_overview_in_eight_bits():
    """Of one row of a batch."""
    with record() as trace:
        queries, keys = torch.randn(2, 3, 80, 8), torch.randn(2, 3, 70, 8)
        attend(queries, keys, keys, site="decoder.0.cross")
    group = make_group(80, 70, calls=tuple(trace), row=1)
    for layer, call in enumerate(group.calls):
        thumbnails = group.picture(layer).thumbnails
        assert thumbnails.shape == (3, 64, 64)
        # One byte is round(255 sqrt(w)): half a step of it either way.
        expected = call.overview(64)[1].sqrt()
        torch.testing.assert_close(thumbnails / 255, expected, atol=0.5 / 255 + 1e-6, rtol=0)


def test_a_restarted_process_gives_no_stamp_again():
    """A browser that holds the base of a stamp shows its tokens, whoever sent them."""

    def first_stamp():  # of a process that has just imported the library
        spec = importlib.util.find_spec("viz_core.view.map_group")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        group = make_group(5, 7)
        return module.MapGroup("x", "X", "q", "k", group.query_tokens, group.key_tokens, group.calls).stamp

    assert first_stamp() != first_stamp()


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


WORDS = {"query_words": (0, 0, 1, 2, 2), "key_words": (0, 1, 1, 1, 2, 3, 3)}


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


def test_error_rates_of_alignments_are_shown_as_accuracies():
    errors = tuple(((layer / 10, 0.25), (0.5, 0.75), (0.0, 1.0)) for layer in range(2))
    group = make_group(5, 7, alignment_errors=errors)
    for layer in range(2):
        shown = [(head["written"], head["read"]) for head in group.picture(layer).fingerprints]
        assert shown == [(1 - written, 1 - read) for written, read in errors[layer]]


START = ViewState("self", 1, 2, display=DisplayOptions(mode="picture"))


def picture_group(special: int = 1, rows: int = 2, columns: int = 3, **changes: Any) -> MapGroup:
    """Patches of 4 x 4 pixels, each of another grey."""
    names = token_names((rows, columns), special)
    greys = np.arange(rows * columns, dtype=np.uint8).reshape(rows, columns) * 9
    pixels = np.repeat(np.kron(greys, np.ones((4, 4), dtype=np.uint8))[..., None], 3, axis=2)
    image = changes.pop("image", MapPicture(pixels, (rows, columns), special))
    return make_group(len(names), len(names), "self", query_tokens=names, key_tokens=names, image=image, **changes)


@pytest.fixture
def group() -> MapGroup:
    return picture_group()


@pytest.fixture
def view(group: MapGroup) -> View:
    return View([group, make_group(7, 5)], view_words())


def test_a_first_answer_holds_the_picture_and_what_the_pinned_tokens_look_at(view: View, group: MapGroup) -> None:
    for pins, tokens in (((), [0]), ((Pin("query", 4), Pin("query", 2)), [4, 2])):
        decoded = decode_view(encode_view(view, replace(START, pins=pins)))
        rows = {f"token 0 self {layer} q{token}" for layer in range(2) for token in tokens}
        assert set(decoded.parts) == {"picture 0 self 0", "picture 0 self 1", "image 0 self", *rows}
        shown = {"grid": [2, 3], "special": 1, "queries": True, "levels": []}
        assert decoded.header["base"]["groups"][0][0]["image"] == shown
        assert decoded.header["base"]["groups"][0][1]["image"] is None
        assert torch.equal(decoded.parts["image 0 self"], torch.from_numpy(group.image.pixels))  # type: ignore[union-attr]
        for layer in range(2):
            for token in tokens:
                expected = group.calls[layer].weights()[0, :, token]
                assert torch.equal(decoded.parts[f"token 0 self {layer} q{token}"], expected)


def test_weights_between_words_follow_from_those_between_pieces() -> None:
    model = load("transformer-en-fr", device="cpu")
    translation = model.translate("Photographers photographed the unbelievable sunset.")
    groups, opened = open_translation(translation, "en")
    found = linked_sentences(groups)
    across, (source, target) = found["across"], found["lines"]
    assert len(source) < len(translation.source_tokens)
    assert ["".join(source), "".join(target)] == [
        "".join(translation.source_tokens),
        "".join(translation.target_tokens),
    ]
    assert (across["layer"], across["head"], across["pattern"]) == (opened.layer, opened.head, "written")
    weights = translation.trace[f"decoder.{opened.layer}.cross"].weights(head=opened.head)[0]
    rows, columns = (
        [[i for i, own in enumerate(numbers) if own == word] for word in range(numbers[-1] + 1)]
        for numbers in (translation.target_words, translation.source_words)
    )
    for query, own in zip(rows, across["weights"], strict=True):
        assert own == pytest.approx([float(weights[query][:, key].sum(dim=1).mean()) for key in columns], abs=6e-4)
