"""What an address asks for: links of the course, former links, fractions for whole numbers, a device that is absent."""

import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from streamlit.testing.v1 import AppTest

from serving.compute.slots import reset_singletons
from tests.pages.reading import elements, key_of
from tests.source_files import ROOT
from tests.visits import Visits

OpenPage = Callable[..., AppTest]


# By chapter: addresses of former versions, and what they choose today.
FORMER: list[tuple[str, dict[str, str], dict[str, str]]] = [
    ("bahdanau", {"b-break": "erase with attention"}, {"b-break-models": "attended"}),
    ("learning", {"l-measure": "si mesmo"}, {"l-measure": "diagonal"}),
    (
        "scoring-functions",
        {"sf-break": "no delta", "sf-scene": "20 contra 2"},
        {"sf-break-mask": "no-delta", "sf-scene": "widths"},
    ),
    (
        "vision-transformer",
        {"vt-break": "columns divided", "vt-sample": "T 恤"},
        {"vt-break-lab": "columns", "vt-sample": "t-shirt"},
    ),
]


@pytest.mark.parametrize(("chapter", "former", "today"), FORMER)
def test_a_former_choice_is_the_choice_of_today(
    visits: Visits, chapter: str, former: dict[str, str], today: dict[str, str]
) -> None:
    app = visits(chapter, **former)
    assert {key: app.session_state[key] for key in today} == today
    unknown = [each.value for each in app.warning if any(f" = {label}" in each.value for label in former.values())]
    assert unknown == []


# By chapter: what addresses asked for that is no longer there.
DROPPED = {
    "transformer": {"t-section": "What scores are made of", "t-terms-head": "3"},
    "queries-keys-values": {"qkv-open-plane": "true", "qkv-guess-star-drawn": "true", "qkv-guess-star": "2013"},
    "sinusoidal-encoding": {"se-section": "On a sentence", "se-sentence": "one two", "se-guess-wave-drawn": "true"},
    "learning": {"l-open-measured": "true", "l-break-claims": "given"},
}


@pytest.mark.parametrize("chapter", DROPPED)
def test_a_link_to_a_section_that_was_dropped_opens_its_chapter(visits: Visits, chapter: str) -> None:
    app = visits(chapter, **DROPPED[chapter], **{"open-all": "false"})
    assert not app.error
    assert not app.warning


@pytest.fixture
def nothing_cached() -> Iterator[None]:
    reset_singletons()
    yield
    reset_singletons()


@pytest.mark.parametrize(
    ("chapter", "device", "sentence"),
    [("home", "cuda:7", "'cuda:7' is not on this machine"), ("transformer", "quantum", "'quantum' is not a device")],
)
@pytest.mark.usefixtures("nothing_cached")
def test_an_absent_device_is_a_sentence(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch, chapter: str, device: str, sentence: str
) -> None:
    monkeypatch.setenv("ATLAS_DEVICE", device)
    app = open_page(chapter)
    assert any(f"ATLAS_DEVICE={sentence}" in error.value.replace("\\", "") for error in app.error)


TEACH = ROOT / "docs" / "teach"
LINK = re.compile(r"\]\(http://localhost:8501/([^)\s]+)\)")
PAGES = [*(TEACH / "en").glob("*.md")]
LINKS = sorted({link for path in PAGES for link in LINK.findall(path.read_text("utf-8"))})
OF_THE_VIEW = re.compile("(.+-)?(head|pin)")
"""Parameters that the attention view reads; it says so where they name nothing."""


def parsed(link: str) -> tuple[str, dict[str, str]]:
    address = urlsplit(link)
    return address.path, dict(parse_qsl(address.query, strict_parsing=True))


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
    keys = [*map(key_of, elements(app.main)), *(component.proto.id for component in app.get("bidi_component"))]
    begin = params.pop("present", "1")
    assert begin == "1" or any(key.endswith(f"-{begin}") for key in keys), begin
    for name, wanted in params.items():
        if not OF_THE_VIEW.fullmatch(name):
            assert is_set(app.session_state[name], wanted), name


@pytest.mark.parametrize("link", LINKS)
def test_a_link_opens_what_it_says(visits: Visits, link: str) -> None:
    """Its figure or question is on the page, each of its controls is set, and nothing in it is refused."""
    chapter, params = parsed(link)
    assert params.pop("lang") == "en"
    expect_what_it_says(visits(chapter, **params, **{"open-all": "false"}), params)
