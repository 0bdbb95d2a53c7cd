"""What an address asks for: links of the course, former links, fractions for whole numbers, a device that is absent."""

import re
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from streamlit.testing.v1 import AppTest

from serving.compute.slots import reset_singletons
from tests.source_files import ROOT
from tests.visits import Visits

OpenPage = Callable[..., AppTest]


# By chapter: addresses of former versions, and what they choose today.
FORMER: list[tuple[str, dict[str, str], dict[str, str]]] = [
    ("architectures", {"a-break": "a layer too few"}, {"a-break": "shallow"}),
    ("attention-pooling", {"ap-break": "a kernel below zero"}, {"ap-break": "signed"}),
    ("bahdanau", {"b-break": "erase with attention"}, {"b-break-models": "attended"}),
    ("learning", {"l-source": "Train one here and now"}, {"l-source": "own"}),
    ("learning", {"l-source": "此時此地訓練一個"}, {"l-source": "own"}),
    ("learning", {"l-measure": "si mesmo"}, {"l-measure": "diagonal"}),
    ("position-embeddings", {"pe-break": "no-order"}, {"pe-break-order": "no-order"}),
    ("queries-keys-values", {"qkv-break": "not divided"}, {"qkv-break": "undivided"}),
    (
        "scoring-functions",
        {"sf-break": "no delta", "sf-scene": "20 contra 2"},
        {"sf-break-mask": "no-delta", "sf-scene": "widths"},
    ),
    (
        "transformer",
        {"t-break": "vectors of one length", "t-search": "束搜尋，寬 4"},
        {"t-break-contributions": "as-long", "t-search": "beam 4"},
    ),
    (
        "vision-transformer",
        {"vt-break": "columns divided", "vt-sample": "T 恤"},
        {"vt-break-lab": "columns", "vt-sample": "t-shirt"},
    ),
    ("vision-transformer", {"vt-break": "positions kept"}, {"vt-break-order": "with-positions"}),
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
    "relative-projection": {"rp-section": "Can a model learn it?", "rp-reach": "100", "rp-open-types": "true"},
    "bahdanau": {"b-open-worth": "true"},
    "multi-head": {"mh-section": "One batch or one by one", "mh-open-cost": "true", "mh-count": "parameters"},
    "transformer": {"t-section": "What scores are made of", "t-terms-head": "3"},
    "vision-transformer": {"vt-open-depth": "true", "vt-open-patches": "true", "vt-filters": "first"},
    "position-embeddings": {
        "pe-section": "Shuffle the words",
        "pe-backwards": "true",
        "pe-break-shuffle": "unshuffled",
    },
    "queries-keys-values": {
        "qkv-against": "Hu",
        "qkv-open-ways": "true",
        "qkv-open-plane": "true",
        "qkv-guess-star-drawn": "true",
        "qkv-guess-star": "2013",
    },
    "model-lab": {"ml-section": "All heads at a glance", "ml-measure": "entropy"},
    "sinusoidal-encoding": {"se-section": "On a sentence", "se-sentence": "one two", "se-guess-wave-drawn": "true"},
    "learning": {"l-open-measured": "true", "l-break-claims": "given"},
    "attention-pooling": {"ap-open-learn": "true", "ap-break-shortcut": "kept", "ap-break": "kept"},
    "architectures": {"a-open-table": "true", "a-guess-cheapest": "3", "a-open-climb": "true", "a-guess-climb": "1"},
    "linear-attention": {"la-open-recall": "true", "la-guess-erase": "1"},
    "scoring-functions": {"sf-open-shapes": "true", "sf-b": "3", "sf-sheet": "2"},
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
    ("chapter", "params", "device", "sentence"),
    [
        ("home", {}, "cuda:7", "ATLAS_DEVICE='cuda:7' is not on this machine"),
        ("architectures", {"a-section": "Stopwatch"}, "cuda:7", "ATLAS_DEVICE='cuda:7'"),
        ("sinusoidal-encoding", {"se-section": "On a sentence"}, "quantum", "ATLAS_DEVICE='quantum' is not a device"),
        ("transformer", {}, "quantum", "ATLAS_DEVICE='quantum' is not a device"),
    ],
)
@pytest.mark.usefixtures("nothing_cached")
def test_an_absent_device_is_a_sentence(
    open_page: OpenPage,
    monkeypatch: pytest.MonkeyPatch,
    chapter: str,
    params: dict[str, str],
    device: str,
    sentence: str,
) -> None:
    monkeypatch.setenv("ATLAS_DEVICE", device)
    app = open_page(chapter, **params)
    assert any(sentence in error.value.replace("\\", "") for error in app.error)


PARTS = [
    ("relative-projection", {"rp-offset": "3.5"}, "Offset δ = 3.5", "this is 3. Use a whole number from −100 to 100."),
    ("relative-projection", {"rp-base": "99.9"}, "Base = 99.9", "this is 99. Use a whole number from 2 to 1,000,000."),
    (
        "relative-projection",
        {"rp-offset": "5.2"},
        "Offset δ = 5.2",
        "this is 5. Use a whole number from −100 to 100.",
    ),  # cut to the default
    ("sinusoidal-encoding", {"se-n": "59.5"}, "Positions n = 59.5", "this is 59. Use a whole number from 1 to 2,000."),
]


@pytest.mark.parametrize(("chapter", "params", "named", "sentence"), PARTS)
def test_a_part_where_a_whole_number_is_wanted_is_cut_off_visibly(
    open_page: OpenPage, chapter: str, params: dict[str, str], named: str, sentence: str
) -> None:
    app = open_page(chapter, **params)
    notes = [caption.value.replace("\\", "") for caption in app.caption if "The address asks for" in caption.value]
    assert len(notes) == 1
    assert named in notes[0]
    assert notes[0].endswith(sentence)
    app.run()
    assert not [caption for caption in app.caption if "The address asks for" in caption.value]


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
