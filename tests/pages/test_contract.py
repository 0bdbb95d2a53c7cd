"""What every chapter keeps, with the cases of its chapter.toml: no list of chapters stands here."""

import re
from collections.abc import Callable

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from tests.book_exercises import EXERCISES
from tests.pages.reading import alts, charts, claim_names, claims, drawn, figure_names, marks, revealed, stands, texts
from tests.visits import CHAPTERS, Break, Hostile, Visits, cases
from ui.chapter.contents import ROOT, all_pages
from ui.text.words import ENGLISH, TEXT, languages, load_words
from ui.widgets.predictions import read_prediction
from viz_core.pretrained.samples import sentence

OpenPage = Callable[..., AppTest]
NO_SUCH_HEAD = load_words("attention-view", ENGLISH)("bad_link")
# Exercises of the book whose experiment comes with the answer, as a text or as a figure with a hint what to look for.
_MEASURED = {
    (each.chapter, each.name): each.shown.replace("alt.", "look.")
    for each in EXERCISES.values()
    if "measured" in each.shown
}
HOSTILE = [(chapter, case) for chapter in CHAPTERS for case in cases(chapter).hostile]
BREAKS = [(chapter, case) for chapter in CHAPTERS for case in cases(chapter).breaks]


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_a_chapter_opens_whole(visits: Visits, chapter: str) -> None:
    """Its claims hold and say what their numbers are, and every figure has its alternative."""
    app = visits(chapter)
    assert [error.value for error in app.error] == []
    stands(app)
    assert marks(app)
    for claim in (each for each in claims(app) if " · " in each):
        assert re.search(r" · (off by `[^`]+`|measured `[^`]+`, at (most|least) .+)$", claim), claim
    assert all(alts(app))
    assert {note.value for note in app.caption if "The address" in note.value} == set()


@pytest.mark.attack("addresses")
@pytest.mark.parametrize(("chapter", "case"), HOSTILE)
def test_what_cannot_be_shown_falls_back_and_is_named(visits: Visits, chapter: str, case: Hostile) -> None:
    """One note for each parameter; the page is the one that it opens with without them."""
    app, words = visits(chapter, **case.at, **case.ask, **case.silent), load_words(chapter, ENGLISH)
    notes = [caption.value.replace("\\", "") for caption in app.caption]
    notes = [note for note in notes if "The address asks for" in note or "The address names" in note]
    controls = words.front["controls"]
    requested = [(controls.get(name.partition(f"{words.prefix}-")[2]), value) for name, value in case.ask.items()]
    of_view = [label for label, _ in requested].count(None) - ("tour" in case.ask)
    if "tour" in case.ask:
        assert sum(f"step {case.ask['tour']} of the tour" in note for note in notes) == 1
    assert len(notes) == len(requested) - max(0, of_view - 1), notes  # those of the attention view share one
    assert sum(NO_SUCH_HEAD in note for note in notes) == (of_view > 0)
    for label, value in requested:
        if label is not None:
            assert sum(f"{label} = {value}" in note for note in notes) == 1, (label, notes)
    assert not app.error
    plain = visits(chapter, **case.at)
    assert (figure_names(app), claims(app)) == (figure_names(plain), claims(plain))


@pytest.mark.parametrize(("chapter", "case"), BREAKS)
def test_a_broken_setting_fails_its_claims_and_says_why(open_page: OpenPage, chapter: str, case: Break) -> None:
    """These claims and no others, whichever setting came before; the broken figure differs from the intact one."""
    words = load_words(chapter, ENGLISH)
    key = words.prefix + "-break" + (f"-{case.part}" if case.part else "")
    first, *others = case.fails
    app = open_page(chapter, **case.at, **{key: words(f"option.{first}")})
    control = app.segmented_control(key=key)
    assert set(control.options) == {words("option.nothing"), *(words(f"option.{name}") for name in case.fails)}
    for name in (first, *others):
        if name != first:
            app.segmented_control(key=key).set_value(name).run()
        assert not app.exception
        assert words(f"break.{name}") in [warning.value for warning in app.warning]
        assert sorted(claim_names(app, failing=True)) == sorted(case.fails[name])


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_claim_has_a_setting_that_breaks_it_or_a_sentence_why_none_does(chapter: str) -> None:
    words, of = load_words(chapter, ENGLISH), cases(chapter)
    broken = of.other_broken.union(*(failing for case in of.breaks for failing in case.fails.values()))
    found = {name.removeprefix("claim.") for name in words.sections if name.startswith("claim.")}
    assert found >= broken
    assert found - broken == {name for name in found if words.has(f"unbroken.{name}")}


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_every_question_keeps_its_answer_until_a_guess(visits: Visits, chapter: str) -> None:
    """The reason and, of an exercise of the book, what was measured; that they are true is shown chapter by chapter."""
    words, before = load_words(chapter, ENGLISH), visits(chapter)
    prefix = f"{words.prefix}-guess-"
    names = [radio.key.removeprefix(prefix) for radio in before.radio if radio.key.startswith(prefix)]
    predictions = {name: read_prediction(words(f"exercise.{name}")) for name in names}
    right = {name: [answer.mark for answer in each.answers].index("x") for name, each in predictions.items()}
    after = texts(visits(chapter, **{prefix + name: str(place + 1) for name, place in right.items()}))
    assert after.count(load_words("common", ENGLISH)("right")) == len(names)
    for name, prediction in predictions.items():
        measured = _MEASURED.get((chapter, name), "")
        for text in filter(None, [prediction.why, measured and words(measured)]):
            # The words between the numbers; the longest of them stand nowhere else.
            parts = re.split(r"\{\w+\}", text.replace("\\", ""))
            assert max(parts, key=len) not in texts(before), name
            assert all(part in after for part in parts), name


@pytest.mark.parametrize(
    ("scheme", "setting", "figure"),
    [
        ("shaw", "unclipped", "index"),
        ("relative-2d", "column-major", "grid"),
        ("alibi", "from-one", "penalty"),
        ("alibi", "logarithm", "penalty"),
        ("t5", "one-way", "buckets"),
    ],
)
def test_a_wrong_scheme_is_drawn_beside_the_right_one(visits: Visits, scheme: str, setting: str, figure: str) -> None:
    option = load_words("position-embeddings", ENGLISH).group("option")
    closer = {"open-all": "false", "pe-section": "One scheme, closer", "pe-scheme": option[scheme]}
    app = visits("position-embeddings", **closer, **{"pe-break": option[setting]})
    (_, right), (_, wrong) = [*charts(app, figure), *charts(app, f"broken-{figure}")]
    drawn = [(a[axis], b[axis]) for a, b in zip(right, wrong, strict=True) for axis in "yz" if axis in a]
    assert not all(np.array_equal(*values) for values in drawn)


FILES = sorted(path.stem for path in (TEXT / ENGLISH).glob("*.md"))
# Where a name of words may be written: in code, and in data whose names have words.
_CODE = ("ui", "pages", "serving", "viz_core", "static_site", "assets/components", "assets/tour", "assets/samples")
_KINDS = (".py", ".js", ".html", ".toml", ".json")


@pytest.fixture(scope="module")
def requested(visits: Visits) -> set[tuple[str, str]]:
    """File and name of the words that any page requests; opening one fails where words are missing."""
    for page in all_pages():
        assert [error.value for error in visits(page).error] == [], page
    return set().union(*visits.words.values())


@pytest.fixture(scope="module")
def written() -> frozenset[str]:
    """Names that stand anywhere in code or data."""
    paths = [path for folder in _CODE for path in (ROOT / folder).rglob("*") if path.suffix in _KINDS]
    paths += (ROOT / "assets" / "checkpoints").glob("*/config.json")
    models = {path.name for folder in ("checkpoints", "hub") for path in (ROOT / "assets" / folder).iterdir()}
    return frozenset(models.union(*(re.findall(r"[\w.-]+", path.read_text(encoding="utf-8")) for path in paths)))


BEGIN_THE_SAME = ["scoring-functions", "bahdanau", "multi-head", "position-embeddings", "transformer"]
IN_CONTROLS = {**dict.fromkeys(BEGIN_THE_SAME, "text"), "architectures": "to", "walk": "start", "model-lab": "start"}


@pytest.mark.parametrize("page", [*IN_CONTROLS, "relative-projection"])
def test_pages_from_scoring_on_open_on_the_default_sentence(visits: Visits, page: str) -> None:
    """Or on how it begins, in the walk, and what follows it, in the lab."""
    app, key = visits(page), f"{load_words(page, ENGLISH).prefix}-{IN_CONTROLS.get(page)}"
    controls = [*app.text_input, *app.text_area, *app.selectbox]
    found = [getattr(each, "options", [each.value]) for each in controls if each.key == key]
    if page == "relative-projection":  # on its circle
        found = [each["text"] for each in drawn(app, "rotation") if "text" in each]
    assert found
    for text in (" ".join(words).strip().removesuffix(" The cat") for words in found):
        assert text in sentence("cat")
        assert len(text.split()) > 3


@pytest.mark.parametrize("language", languages())
@pytest.mark.parametrize("chapter", CHAPTERS)
def test_nothing_in_sight_states_an_answer_before_the_guess(visits: Visits, chapter: str, language: str) -> None:
    """Neither definition, takeaways, badges nor captions; tests/browser reads figures and components, too."""
    address = {} if language == ENGLISH else {"lang": language, "open-all": "false"}
    assert revealed(visits(chapter, **address), load_words(chapter, language)) == {}


@pytest.mark.parametrize("file", FILES)
def test_every_section_and_label_is_used(file: str, requested: set[tuple[str, str]], written: frozenset[str]) -> None:
    """A page requests it, or code writes its name, or the last part of it: f"option.{kernel}", `measure_${name}`."""
    words = load_words(file, ENGLISH)
    unused = []
    for name in (*words.sections, *words.front.get("controls", {})):
        if name.startswith("streamlit."):
            continue  # all are sent to the browser
        endings = [name, *(name[match.end() :] for match in re.finditer("[._-]", name))]
        if (file, name) not in requested and not any(written.issuperset(re.split("[ /]", each)) for each in endings):
            unused.append(name)
    assert unused == []
