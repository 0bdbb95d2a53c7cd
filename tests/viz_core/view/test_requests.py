"""Requests and their one spelling."""

from dataclasses import replace

import pytest

from viz_core.view.requests import (
    ChangeRequest,
    FileRequest,
    GroupRequest,
    ImageRequest,
    KeysRequest,
    MapRequest,
    MeasuresRequest,
    Pin,
    RowsRequest,
    ThumbnailsRequest,
    TileRequest,
    TokenRequest,
    UnknownRequest,
    read_request,
)

HEADS = MapRequest(((2, 5), (2, 6)))
WORDS = MapRequest(((0, 1), (11, 0)), "max", words=True)


@pytest.mark.parametrize(
    ("text", "request_"),
    [
        ("picture 0 cross 11", GroupRequest(0, "cross", ThumbnailsRequest(11))),
        ("change 0 cross 1", GroupRequest(0, "cross", ChangeRequest(1))),
        ("measures 0.cross:2.5_2.6:max:tokens", GroupRequest(0, "cross", MeasuresRequest(replace(HEADS, how="max")))),
        ("image 1 encoder-self", GroupRequest(1, "encoder-self", ImageRequest())),
        ("token 0 cross 2 q10", GroupRequest(0, "cross", TokenRequest(2, Pin("query", 10)))),
        ("keys 0 cross 3", GroupRequest(0, "cross", KeysRequest(3))),
        ("token 0 cross 0 k3", GroupRequest(0, "cross", TokenRequest(0, Pin("key", 3)))),
        ("map 0.cross:2.5_2.6:mean:tokens", GroupRequest(0, "cross", HEADS)),
        ("map 1.decoder-self:0.1_11.0:max:words", GroupRequest(1, "decoder-self", WORDS)),
        ("tile 0.cross:2.5_2.6:mean:tokens 3 4 1 20", GroupRequest(0, "cross", TileRequest(HEADS, 3, 4, 1, 20))),
        (
            "rows 0.cross:2.5_2.6:mean:tokens 512 64 0 900",
            GroupRequest(0, "cross", RowsRequest(HEADS, 512, 64, 0, 900)),
        ),
        ("page", FileRequest("page")),
        ("notebook", FileRequest("notebook")),
    ],
)
def test_each_is_read_and_written_back(text, request_):
    assert read_request(text) == request_
    assert str(request_) == text


@pytest.mark.parametrize(
    "text",
    [
        *("", "page ", "picture", "picture 2 cross 0", "picture 0 cross 00", "picture 0 ../x 0", "picture 0.cross 0"),
        *("picture 0 cross 00000", "image 0 cross 1", "token 0 cross 1 q", "token 0 cross 1 5", "token 0 cross 1 q05"),
        *("map", "map 0.cross:2.5:mean", "map 2.cross:2.5:mean:tokens", "map 0.cross:2:mean:tokens"),
        *("map 0.cross:2.5_:mean:tokens", "map 0.cross:2.5:sum:tokens", "map 0.../x:2.5:mean:tokens"),
        *("map 0.cross:2.٥:mean:tokens", "map 0.cross:2.5:mean:tokens\n", "tile 0.cross:2.5:mean:tokens 0 0 0"),
        *("rows 0.cross:2.5:mean:tokens 0 1 0", "rows 0.cross:2.5:mean:tokens 0 -1 0 1", "rows 0 cross 0 1 0 1"),
        *("x" * 10_000, "map " + "0." * 5000, "map 0.cross:" + "_".join(["0.0"] * 5000) + ":mean:tokens"),
        "picture 0 cross q5",
        "picture 0.cross:0.1:mean:tokens",
        "token 0 cross 1 2",
        "token 0 cross q1 2",
        "map 0 cross 1 2",
        "tile 0.cross:0.1:mean:tokens 1 1 1 q1",
    ],
)
def test_what_is_no_request_stays_as_it_is(text):
    assert read_request(text) == UnknownRequest(text)
    assert str(read_request(text)) == text
