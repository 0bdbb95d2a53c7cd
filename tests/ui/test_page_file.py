"""A page's state from a file that anybody may have written."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ui.widgets.page_file import MAX_BYTES, PageFileError, read_page_file

LONG = "the cat " * 600
GOOD: dict[str, Any] = {
    "attention-atlas": 1,
    "chapter": "model-lab",
    "address": {"ml-model": ["bert"], "head": ["self.1.0"], "ml-several": ["a", "b"]},
    "texts": {"ml-text": LONG},
}


def read(content: bytes) -> Any:
    return read_page_file(content, "model-lab", "ml", {"ml-text", "ml-model"})


def refused(content: bytes) -> str:
    with pytest.raises(PageFileError) as error:
        read(content)
    return error.value.reason


def test_what_was_saved_comes_back() -> None:
    page = read(json.dumps(GOOD).encode())
    assert (page.address, page.texts) == (GOOD["address"], {"ml-text": LONG})


@pytest.mark.parametrize(
    "changed",
    [
        {"attention-atlas": 2},
        {"chapter": ["model-lab"]},
        {"chapter": "<b>model-lab</b>"},
        {"more": 1},
        {"address": [["ml-model", "bert"]]},
        {"address": {"ml-model": "bert"}},
        {"address": {"ml-model": []}},
        {"address": {"ml-model": [1]}},
        {"address": {"ml-model": ["\ud800"]}},
        {"address": {"ml-model": ["x" * 8001]}},
        {"address": {f"ml-a{i}": [""] for i in range(101)}},
        {"address": {"embed_options": ["x"]}},
        {"address": {"__proto__": ["x"]}},
        {"texts": [LONG]},
        {"texts": {"ml-text": 5000 * [1]}},
        {"texts": {"ml-text": "an address can hold this"}},
        {"texts": {"ml-text": LONG + "\udfff"}},
    ],
)
def test_what_is_no_saved_view_is_refused(changed: dict[str, Any]) -> None:
    assert refused(json.dumps(GOOD | changed).encode()) == "none"


@pytest.mark.parametrize("content", [b"", b"\xff\xfe", b"null", b"[]", b"{}", b"[" * 100_000, b"NaN", b"9" * 5000])
def test_what_is_no_json_object_is_refused(content: bytes) -> None:
    assert refused(content) == "none"


def test_each_other_fault_has_its_own_sentence() -> None:
    assert refused(b" " * (MAX_BYTES + 1)) == "large"
    assert refused(json.dumps(GOOD | {"chapter": "bahdanau"}).encode()) == "elsewhere"
    assert refused(json.dumps(GOOD | {"address": {"t-text": ["x"]}}).encode()) == "strange"
    assert refused(json.dumps(GOOD | {"texts": {"ml-warmth": LONG}}).encode()) == "strange"
