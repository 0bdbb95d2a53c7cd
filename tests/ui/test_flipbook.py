"""A flip book: each page is the answer that a browser would have waited for."""

import pytest
import torch

from benchmarks.view_bytes import decode_view
from tests.viz_core.view.attention_groups import make_group
from ui.widgets.flipbook import MOST_BYTES, encode_flipbook, is_small
from viz_core.view.framing import unframe
from viz_core.view.payload import View, encode_view
from viz_core.view.state import ViewState
from viz_core.view.words import WORD_NAMES

WORDS = {name: name for name in WORD_NAMES}
STATE = ViewState("self", 0, 1)


def a_view(token: str) -> View:
    return View((make_group(5, 5, "self", layers=1, query_tokens=(token,) * 5),), WORDS)


def as_page(view: View) -> bytes:
    return encode_view(view, STATE, turn=-1, words=False, along="l-step")


def test_every_page_opens_by_itself_and_lacks_only_the_words() -> None:
    views = {0: a_view("first"), 20: a_view("second")}
    book = encode_flipbook(views, as_page)
    header, start = unframe(book)
    assert [page["value"] for page in header["pages"]] == [0, 20]
    for placed, view in zip(header["pages"], views.values(), strict=True):
        first = start + placed["offset"]
        assert first % 4 == 0
        page = decode_view(book[first : first + placed["length"]])
        whole = decode_view(encode_view(view, STATE))
        assert (placed["stamp"], page.header["along"], page.header["turn"]) == (view.stamp, "l-step", -1)
        assert page.header["base"] == {k: v for k, v in whole.header["base"].items() if k != "words"}
        assert page.parts.keys() == whole.parts.keys()
        assert all(torch.equal(part, whole.parts[name]) for name, part in page.parts.items())


@pytest.mark.parametrize("values", [(), (20, 0)])
def test_values_that_do_not_rise_are_refused(values: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="pages: expected values that rise, got (none|20, 0)"):
        encode_flipbook({value: a_view("one") for value in values}, as_page)


def test_a_large_book_is_not_offered() -> None:
    groups = [make_group(8, 16, layers=2, heads=4)]
    stops = MOST_BYTES // (5 * 8 * 16 * 2 * 4)
    assert is_small(groups, stops)
    assert not is_small(groups, stops + 1)
