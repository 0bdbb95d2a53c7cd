"""Links of the course open what they say."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from streamlit.testing.v1 import AppTest

from tests.source_files import ROOT
from tests.visits import Visits

TEACH = ROOT / "docs" / "teach"
LINK = re.compile(r"\]\(http://localhost:8501/([^)\s]+)\)")
PAGES = [*(TEACH / "en").glob("*.md")]
LINKS = sorted({link for path in PAGES for link in LINK.findall(path.read_text("utf-8"))})
OF_THE_VIEW = re.compile("(.+-)?(head|pin)")
"""Parameters that the attention view reads; it says so where they name nothing."""


def parsed(link: str) -> tuple[str, dict[str, str]]:
    address = urlsplit(link)
    return address.path, dict(parse_qsl(address.query, strict_parsing=True))


def keys(app: AppTest) -> list[str]:
    """The keys of its containers and components, each after an id."""
    found = [component.proto.id for component in app.get("bidi_component")]

    def walk(block: Any) -> None:
        for child in getattr(block, "children", {}).values():
            found.append(getattr(child.proto, "id", ""))
            walk(child)

    walk(app.main)
    return found


def is_set(value: Any, wanted: str) -> bool:
    """Whether a control has the value that the address gives it."""
    if isinstance(value, bool):
        return value == (wanted == "true")
    if isinstance(value, int | float):
        return float(value) == float(wanted)
    return wanted in (map(str, value) if isinstance(value, list) else [value])


def expect_what_it_says(app: AppTest, params: dict[str, str]) -> None:
    captions = [caption.value for caption in app.caption if "The address " in caption.value]
    assert captions == []
    assert not app.error
    begin = params.pop("present", "1")
    assert begin == "1" or any(key.endswith(f"-{begin}") for key in keys(app)), begin
    for name, wanted in params.items():
        if not OF_THE_VIEW.fullmatch(name):
            assert is_set(app.session_state[name], wanted), name


@pytest.mark.parametrize("link", LINKS)
def test_a_link_opens_what_it_says(visits: Visits, link: str) -> None:
    """Its figure or question is on the page, each of its controls is set, and nothing in it is refused."""
    chapter, params = parsed(link)
    assert params.pop("lang") == "en"
    expect_what_it_says(visits(chapter, **params, **{"open-all": "false"}), params)


def test_a_link_to_nothing_is_found(visits: Visits) -> None:
    app = visits("queries-keys-values", **{"open-all": "false"})
    with pytest.raises(AssertionError):
        expect_what_it_says(app, {"present": "figure-nowhere"})
    with pytest.raises(AssertionError):
        expect_what_it_says(app, {"qkv-query": "Hu"})
