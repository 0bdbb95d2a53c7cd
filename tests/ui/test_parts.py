"""Lazy parts of a page, claims with their badges, cards of sources, and cards of models."""

import re
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.reading import badges, components
from ui.chapter.parts import _message
from ui.chapter.source_cards import as_printed, everything_printed, find_printed
from ui.text.numbers import localised
from ui.text.words import ENGLISH, languages, load_words
from viz_core.pretrained import available, load_classifier
from viz_core.pretrained.samples import GARMENTS, SCENES

A_BROWSER = {"timezone": "Europe/Paris"}


def page() -> None:
    """Four parts, each with words for the time until it comes."""
    import streamlit as st

    from ui.chapter.parts import Parts

    parts = Parts("page", None, st.container())
    for name in "abcd":
        parts.lazy(
            name, lambda name=name: st.write(f"{name} is here"), 300, lambda name=name: st.write(f"{name} waits")
        )


def opened(visible: Any = None, **context: str) -> AppTest:
    app = AppTest.from_function(page)
    app.context = context
    if visible is not None:
        app.session_state["visible-parts"] = visible
    return app.run()


def texts(app: AppTest) -> list[str]:
    assert not app.exception
    return [element.value for element in app.markdown]


def test_a_browser_is_sent_what_is_near_and_no_more() -> None:
    app = opened()
    assert texts(app) == ["a is here", "b is here", "c is here", "d is here"], "where nobody has a window"
    assert components(app, "lazy_parts") == []
    assert texts(opened(**A_BROWSER)) == ["a waits", "b waits", "c waits", "d waits"]
    app = opened({"page": frozenset({"page-b", "page-d"}), "another page": frozenset({"page-a"})}, **A_BROWSER)
    assert texts(app) == ["a waits", "b is here", "c waits", "d is here"]
    marks = [mark.json for mark in components(app, "lazy_parts")[1:]]
    assert ['"pending": true' in mark for mark in marks] == [True, False, True, False]
    assert _message("lazy-of-another-chapter") == {}, "what a mark of the last chapter said may still come"


@pytest.mark.parametrize(
    ("sent", "stored"),
    [
        (["a", "b"], {"a", "b"}),
        (["a", 7, None, ["b"]], {"a"}),
        ([str(i) for i in range(10_000)], {str(i) for i in range(64)}),
        ("ab", {"before"}),
        (None, {"before"}),
    ],
)
def test_whatever_a_browser_says_is_near_is_kept_in_bounds(sent: Any, stored: set[str]) -> None:
    def report(sent: object) -> None:
        import streamlit as st

        from ui.chapter.parts import Parts

        st.session_state["visible-parts"] = {"page": frozenset({"before"}), "other": frozenset({"x"})}
        Parts("page", None, st.container()).store_visible(sent)

    app = AppTest.from_function(report, args=(sent,)).run()
    assert not app.exception
    assert app.session_state["visible-parts"] == {"page": stored, "other": {"x"}}


def row(kind: str, measured: float, deferred: bool) -> None:
    """Draw one claim, and a caption each time it is measured."""
    import streamlit as st

    from ui.chapter.claims import Claim
    from ui.text.words import load_words

    def measure() -> float:
        st.caption("measured")
        return measured

    claim = Claim("claim-a", "The sum is 1", kind, measure if deferred else measured, 1e-5)
    assert claim.is_deferred is deferred
    (claim.draw_pending if st.session_state.get("pending") else claim.draw)(load_words("common"))


@pytest.mark.parametrize(
    ("kind", "measured", "holds"),
    [
        ("off-by", 0.0, True),
        ("off-by", 2e-5, False),
        ("off-by", float("nan"), False),
        ("at-most", 0.5, False),
        ("at-least", 1e-5, True),
        ("at-least", 0.0, False),
    ],
)
@pytest.mark.parametrize("deferred", [False, True])
def test_a_badge_holds_on_the_right_side_of_its_limit(kind: str, measured: float, holds: bool, deferred: bool) -> None:
    app = AppTest.from_function(row, args=(kind, measured, deferred)).run()
    assert badges(app) == {"The sum is 1": holds}
    if deferred:
        app.session_state["pending"] = True
        app.run()
        assert badges(app) == {}
        assert re.search("The sum is 1.*…", app.markdown[0].value)
        assert not app.caption, "it is not measured"


@pytest.mark.parametrize(
    ("printed", "ours", "written"),
    [
        ("0.2689, 0.7311, 0, 0", [0.26894, 0.73106, 0.0, -0.0], "0.2689, 0.7311, 0, 0"),
        ("-0.4827", -0.48269, "-0.4827"),
        ("-0.0", -0.01, "0.0"),  # no number is minus nothing
        ("62,832", 60611.2, "60,611"),
        ("[[-1, 1], [-1, 1]]", [-0.99999, 0.99999, -0.99999, 0.99999], "[[-1, 1], [-1, 1]]"),
        ("k2 of conv1d: 3.5", 3.4499, "k2 of conv1d: 3.4"),  # digits in names are not numbers
        ("il est calme .", "il est calme.", "il est calme."),
        ("BLEU 28.4", None, ""),
    ],
)
def test_ours_is_written_with_the_digits_that_were_printed(printed: str, ours: object, written: str) -> None:
    assert as_printed(printed, ours) == written  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="expected 2 numbers, as in '1, 2', got 3"):
        as_printed("1, 2", [1, 2, 3])


def test_each_row_is_there_once_and_a_quoted_sentence_is_translated_into_every_language() -> None:
    rows = everything_printed()
    assert len({(row.chapter, row.name) for row in rows}) == len(rows)
    sentences = [row for row in rows if len(re.findall(r"\b[a-z]{2,}\b", row.quote)) >= 6]
    assert len(sentences) >= 10
    others = set(languages()) - {ENGLISH}
    assert {row.name: set(row.translations) for row in sentences} == {row.name: others for row in sentences}
    assert not [row.name for row in rows if row.translations and not row.quote]
    with pytest.raises(KeyError, match="has no row 'nothing' of multi-head"):
        find_printed("multi-head", "nothing")


CARDS = {card.name: card for card in available()}


def _text(name: str, language: str) -> str:
    def draw(name: str) -> None:
        import streamlit as st

        from ui.text.model_card import model_card_text
        from viz_core.pretrained import available

        st.markdown(model_card_text(next(card for card in available() if card.name == name)))

    app = AppTest.from_function(draw, args=(name,))
    app.query_params["lang"] = language
    app.run()
    assert not app.exception
    return str(app.markdown[0].value)


@pytest.mark.parametrize("language", languages())
@pytest.mark.parametrize("name", CARDS)
def test_a_card_has_the_scores_and_counts_of_its_files_in_words_of_its_language(name: str, language: str) -> None:
    card, text = CARDS[name], _text(name, language)
    digits = 1 if card.task == "translation" else 2
    numbers = [f"{card.config['parameters']:,}", *(f"{score:.{digits}f}" for score in card.scores.values())]
    numbers += [f"{each['bleu']:.1f}" for each in card.training.get("bleu_by_length", ())]
    numbers += [f"{row[i] / sum(row):.1%}" for i, row in enumerate(card.training.get("confusion", ()))]
    assert not [number for number in numbers if localised(number, language) not in text]
    assert not re.search(r"\{\w+\}", text)
    sections = load_words("model-card", ENGLISH).sections.values()
    sentences = [each.strip() for section in sections for each in re.findall(r"[^.{}|]{12,}", section)]
    assert any(each in text for each in sentences) is (language == ENGLISH)
    for section in load_words("model-card", language).sections.values():  # no number is typed by hand, but the beam
        plain = re.sub(r"\{\w+\}|\b(?:19|20)\d\d\b|float16|CIFAR-10", "", section)
        assert re.findall(r"\d+", plain) in ([], ["4"])


@pytest.mark.parametrize("language", languages())
def test_each_class_and_each_sample_has_a_name(language: str) -> None:
    models = [load_classifier(card.name, "cpu") for card in available(task="classification")]
    labels = {label for model in models for label in model.labels}
    named = load_words("common", language).group("class")
    assert named.keys() == labels | {*GARMENTS, *SCENES}
    if language == ENGLISH:
        assert {label: named[label] for label in labels} == {label: label for label in labels}
    else:
        assert not {label for label in labels if named[label] == label}
