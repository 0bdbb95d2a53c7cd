"""What every page keeps: it stands whatever its address asks for, opens at a link, and answers a guess."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from serving.compute.slots import reset_singletons
from tests.pages.hostile_addresses import HOSTILE, together
from tests.pages.reading import badges, claims, figure_names, figures_alt, heatmap, marks, texts
from tests.tiny_vit import GREY
from tests.viz_core.hub.families import build_all
from ui.chapter.contents import all_chapters
from viz_core.lessons.queries_keys_values.lookup import BOOK_DATABASE

OpenPage = Callable[..., AppTest]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_all(("bert", "gpt2"), tmp_path_factory.mktemp("models"))


@pytest.fixture
def around(request: pytest.FixtureRequest, chapter: str) -> None:
    """The small models of those chapters that have more than the shipped ones, or large ones."""
    small = {"model-lab": "offline_lab", "vision-transformer": "small_vision_models"}
    if chapter in small:
        request.getfixturevalue(small[chapter])


@pytest.fixture
def nothing_cached() -> Iterator[None]:
    reset_singletons()
    yield
    reset_singletons()


def all_hold(app: AppTest) -> bool:
    """Whether the page has claims and each of them holds."""
    return bool(badges(app)) and all(badges(app).values())


def holds(app: AppTest, words: str) -> bool:
    return next(holds for claim, (holds, _) in marks(app).items() if words in claim)


# Where a chapter is opened with an address that asks too much, and what is to be seen there all the same.
PLACES: dict[str, dict[str, str]] = {
    "transformer": {"t-text": "Go."},
    "vision-transformer": {"vt-section": "Patch lab", "vt-model": GREY},
}
STANDS: dict[str, Callable[[AppTest], bool]] = {
    "architectures": all_hold,
    "attention-pooling": lambda app: "fit" in figure_names(app),
    "bahdanau": lambda app: app.segmented_control(key="b-step").value == 3,
    "heads": lambda app: all_hold(app) and "heads" in figure_names(app),
    "learning": all_hold,
    "linear-attention": lambda app: all_hold(app) and {"map", "state"} <= set(figure_names(app)),
    "model-lab": lambda app: bool(claims(app)),
    "multi-head": all_hold,
    "position-embeddings": lambda app: bool(figure_names(app)),
    "queries-keys-values": lambda app: (
        {"diagram", "plane"} <= set(figure_names(app))
        and app.dataframe[0].value.values.tolist() == [list(pair) for pair in BOOK_DATABASE]
        and "qkv-names" not in app.query_params
    ),
    "relative-projection": lambda app: "rotation" in figure_names(app) and holds(app, "for all 1,000 positions"),
    "scoring-functions": lambda app: "0.2689, 0.7311, 0.0000, 0.0000; " in figures_alt(app),
    "sinusoidal-encoding": lambda app: heatmap(app)[1].shape == (60, 32),
    "transformer": lambda app: any(m.value.startswith("## ") for m in app.markdown),
    "vision-transformer": lambda app: all(claim.startswith(":green[") for claim in claims(app)),
}


def test_every_chapter_is_asked_for_what_it_cannot_show() -> None:
    assert set(HOSTILE) == set(STANDS) == set(all_chapters()[1:])


@pytest.mark.attack("addresses")
@pytest.mark.parametrize(
    ("chapter", "params", "notes"),
    [(chapter, params, notes) for chapter, rows in HOSTILE.items() for params, notes in together(rows)],
)
@pytest.mark.usefixtures("around")
def test_hostile_parameters_fall_back_and_say_so(
    open_page: OpenPage, chapter: str, params: dict[str, str], notes: list[str]
) -> None:
    """One note for each, which names what was asked; the page is the one it opens with."""
    app = open_page(chapter, **PLACES.get(chapter, {}) | params)
    captions = [caption.value.replace("\\", "") for caption in app.caption]
    captions = [caption for caption in captions if "The address asks for" in caption or "The address names" in caption]
    assert len(captions) == len(notes), captions
    for note in notes:
        assert sum(note in caption for caption in captions) == 1, (note, captions)
    assert not app.error
    assert STANDS[chapter](app)


@pytest.mark.parametrize(
    ("chapter", "params"),
    [
        *(
            ("transformer", {"t-text": "I lost.", "t-section": section})
            for section in ("Inside the encoder", "The causal mask", "How it was trained", "Its parameters")
        ),
        *(
            ("scoring-functions", {"sf-section": section})
            for section in ("Why 1/√d", "The Gaussian, taken apart", "Four scores", "Shapes")
        ),
    ],
)
def test_a_tab_opens_from_a_link_and_its_claims_hold(open_page: OpenPage, chapter: str, params: dict[str, str]) -> None:
    app = open_page(chapter, **params)
    assert figure_names(app)
    assert all_hold(app)


@pytest.mark.parametrize(
    ("chapter", "params", "guess", "option", "answer"),
    [
        ("architectures", {}, "a-guess-twice", "4, since each layer adds two tokens", "**Yes.**"),
        ("attention-pooling", {}, "ap-guess-sphere", 1, "normalisation cancels the first and last terms"),
        ("heads", {}, "hs-guess-induction", "None", "**Yes.** The writer was trained on single sentences"),
        ("learning", {}, "l-guess-one-layer", 2, "**Yes.** Its key must contain the token before it"),
        ("linear-attention", {}, "la-guess-twice", "8", "**Yes.** The state holds"),
        ("multi-head", {}, "mh-guess-double", "Nothing: 16,384 before and after", "**Yes.**"),
        (
            "position-embeddings",
            {"pe-section": "Cost and reach"},
            "pe-guess-bag",
            1,
            "**Yes.** The weighted sum has the same terms in another order",
        ),
        (
            "queries-keys-values",
            {},
            "qkv-guess-approximate",
            1,
            "**Yes.** Normalised, these weights are equal",
        ),
        ("scoring-functions", {}, "sf-guess-variance", 2, "**Yes.** It sums 64 independent products"),
        (
            "transformer",
            {"t-text": "Go."},
            "t-guess-shape",
            0,
            "**Not quite.** Rows are queries: French attends to English.",
        ),
        (
            "vision-transformer",
            {"vt-model": GREY, "vt-section": "Patch lab"},
            "vt-guess-bag",
            1,
            "**Yes.** The class token sums the same values",
        ),
    ],
)
@pytest.mark.usefixtures("around")
def test_an_exercise_reveals_its_answer_only_after_a_guess(
    open_page: OpenPage, chapter: str, params: dict[str, str], guess: str, option: int | str, answer: str
) -> None:
    """That the answers are true is shown chapter by chapter."""
    app = open_page(chapter, **params)
    reason = answer.split("** ")[-1]
    assert reason not in texts(app)
    choice = app.radio(key=guess)
    choice.set_value(choice.options[option] if isinstance(option, int) else option).run()
    assert not app.exception
    assert answer.removesuffix(reason).strip() in texts(app)
    assert reason in texts(app)  # of a page's first exercise, by itself: the browser hides it until the reader compares


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
    ("relative-projection", {"rp-offset": "3.5"}, "Offset δ = 3.5", "use a whole number from −100 to 100. This is 3."),
    ("relative-projection", {"rp-base": "99.9"}, "Base = 99.9", "use a whole number from 2 to 1,000,000. This is 99."),
    ("relative-projection", {"rp-offset": "5.2"}, "Offset δ = 5.2", "to 100. This is 5."),  # cut to the default
    ("sinusoidal-encoding", {"se-n": "59.5"}, "Positions n = 59.5", "use a whole number from 1 to 2,000. This is 59."),
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


@pytest.mark.parametrize("value", ["7", "7.0", "-12"])
def test_whole_numbers_need_no_note(open_page: OpenPage, value: str) -> None:
    app = open_page("relative-projection", **{"rp-offset": value})
    assert app.slider(key="rp-offset").value == int(float(value))
    assert not [caption for caption in app.caption if "The address asks for" in caption.value]


@pytest.mark.parametrize("chapter", ["attention-pooling", "multi-head", "position-embeddings", "relative-projection"])
def test_a_badge_says_what_its_number_is(open_page: OpenPage, chapter: str) -> None:
    """Never "sum to 1 `0`": by how much it is off, or what was measured and what is allowed."""
    app = open_page(chapter, **{"pe-section": "Shuffle the words"} if chapter == "position-embeddings" else {})
    assert len(claims(app)) == len(marks(app)) > 0
    for claim in claims(app):
        assert re.search(r" · (off by `[^`]+`|measured `[^`]+`, at (most|least) .+)$", claim), claim
