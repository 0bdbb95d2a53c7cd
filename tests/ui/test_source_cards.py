"""Cards of what sources print: numbers written with the digits that were printed, and what the card says of them."""

from __future__ import annotations

import re

import pytest
from streamlit.testing.v1 import AppTest

from ui.chapter.source_cards import as_printed, everything_printed, in_language
from ui.text.words import ENGLISH, languages


@pytest.mark.parametrize(
    ("printed", "ours", "written"),
    [
        ("0.2689, 0.7311, 0, 0", [0.26894, 0.73106, 0.0, -0.0], "0.2689, 0.7311, 0, 0"),
        ("-0.4827", -0.48269, "-0.4827"),
        ("−0.4827", -0.48269, "−0.4827"),
        ("-0.0", -0.01, "0.0"),  # no number is minus nothing
        ("62,832", 60611.2, "60,611"),
        ("(2, 1, 4)", [2, 1, 4], "(2, 1, 4)"),
        ("[[-1, 1], [-1, 1]]", [-0.99999, 0.99999, -0.99999, 0.99999], "[[-1, 1], [-1, 1]]"),
        ("k2 of conv1d: 3.5", 3.4499, "k2 of conv1d: 3.4"),  # digits in names are not numbers
        ("il est calme .", "il est calme.", "il est calme."),
        ("BLEU 28.4", None, ""),
    ],
)
def test_ours_is_written_with_the_digits_that_were_printed(printed: str, ours: object, written: str) -> None:
    assert as_printed(printed, ours) == written  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("values", "english", "portuguese"),
    [
        ("35.333, 62,832", "35.333, 62,832", "35,333; 62.832"),
        (
            "[[0.5403, 0.8415], [-0.8415, 0.5403]]",
            "[[0.5403, 0.8415], [−0.8415, 0.5403]]",
            "[[0,5403; 0,8415]; [−0,8415; 0,5403]]",
        ),
        ("20.05, 19.73; 178.97, 18.40", "20.05, 19.73; 178.97, 18.40", "20,05; 19,73 | 178,97; 18,40"),
        ("(4, 7, 10)", *2 * ("(4, 7, 10)",)),
        ("000, 001; 1e-07", *2 * ("000, 001; 1e-07",)),
        ("il est calme . 1.000", "il est calme . 1.000", "il est calme . 1,000"),
    ],
)
def test_numbers_and_lists_are_those_of_the_language(values: str, english: str, portuguese: str) -> None:
    assert [in_language(values, language) for language in ("en", "zh-TW")] == [english, english]
    assert in_language(values, "pt-BR") == portuguese


def test_a_quoted_sentence_is_translated_into_every_language() -> None:
    sentences = [row for row in everything_printed() if len(re.findall(r"\b[a-z]{2,}\b", row.quote)) >= 6]
    assert len(sentences) >= 10
    others = set(languages()) - {ENGLISH}
    assert {row.name: set(row.translations) for row in sentences} == {row.name: others for row in sentences}
    assert not [row.name for row in everything_printed() if row.translations and not row.quote]


def _page() -> None:
    from ui.chapter.source_cards import Printed, draw_card
    from ui.text.words import Words

    sections = {name: name for name in ("book", "book.printed", "book.ours", "book.erratum")}
    sections |= {f"book.{name}": name for name in ("agrees", "differs", "run")}
    common = Words("common", {}, sections)
    words = Words("x", {}, {f"book.{name}": "of {n} names" for name in "abc"} | {"erratum.b": "it was *{n}*"})
    for name, number, run in (("a", 2.0, False), ("b", 3.0, False), ("c", 3.0, True)):
        draw_card(Printed(name, "x", "Some_Book", "2.0", run), number, words, common, n=6)


def test_a_card_says_whether_the_two_agree() -> None:
    app = AppTest.from_function(_page).run()
    assert not app.exception
    cards = [markdown.value for markdown in app.markdown]
    assert cards.count(":gray[:material/menu_book: **book** Some\\_Book]  \nof 6 names") == 3
    verdicts = [text for text in cards if text.startswith("book.printed `2.0`")]
    assert [text.split()[-1] for text in verdicts] == ["agrees", "differs", "run"]
    assert "`3.0`" in verdicts[1]
    assert [caption.value for caption in app.caption if "book.erratum" in caption.value] == [
        ":material/edit_note: **book.erratum** it was *6*"
    ]
