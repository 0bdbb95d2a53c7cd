"""Source cards: what a source printed, the same computed here, and whether both agree to the digits printed."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TypeAlias

import streamlit as st

from ui.chapter.parts import Content, Deferred
from ui.text.markdown import after_label, escape, join_sentences
from ui.text.numbers import localised, separators
from ui.text.words import Words
from viz_core.runtime.assets import ASSETS, reading

Ours: TypeAlias = str | float | Sequence[float] | None
"""The same computed here: text, or numbers in the order in which they were printed; None where nothing is computed."""

PRINTED = ASSETS / "book" / "printed.json"
_MARKS = {
    "agrees": ":green[:material/check:]",
    "differs": ":orange[:material/difference:]",
    "run": ":gray[:material/casino:]",
}
_NUMBER = re.compile(r"(?<![\w.])[-−]?\d+(?:,\d{3})*(?:\.\d+)?")


@dataclass(frozen=True)
class Printed:
    """A figure, an output or an exercise of a source.

    Attributes:
        name: `book.NAME` of the chapter's words describes it, and `erratum.NAME`, if any, what is wrong with it.
        chapter: whose page shows it.
        source: where it was printed.
        printed: what was printed, number by number; or what follows from the source's formula, worked by hand.
        run: whether it is the result of one random run, so that another need not agree.
        kind: "printed" where the source prints the value, "formula" where it follows from the source's formula.
        quote: the words or numbers of the source in which the value is found; needed for "printed".
        translations: of a quote that is a sentence, by language.
    """

    name: str
    chapter: str
    source: str
    printed: str
    run: bool = False
    kind: str = "printed"
    quote: str = ""
    translations: Mapping[str, str] = field(default_factory=dict)


@cache
def everything_printed() -> tuple[Printed, ...]:
    """Return every row of assets/book/printed.json."""
    with reading(PRINTED):
        return tuple(Printed(**row) for row in json.loads(PRINTED.read_text(encoding="utf-8")))


def find_printed(chapter: str, name: str) -> Printed:
    """Return the row of a chapter by its name.

    Raises:
        KeyError: if there is no such row.
    """
    for row in everything_printed():
        if (row.chapter, row.name) == (chapter, name):
            return row
    raise KeyError(f"{PRINTED.name} has no row {name!r} of {chapter}")


def as_printed(printed: str, ours: Ours) -> str:
    """Return what was printed with each number replaced by ours, rounded to as many digits; text is unchanged.

    0.26894 becomes "0.2689" where "0.2689" was printed, so both agree if the texts are equal.

    Raises:
        ValueError: if there are more or fewer numbers than were printed.
    """
    if isinstance(ours, str) or ours is None:
        return ours or ""
    numbers = [ours] if isinstance(ours, int | float) else list(ours)
    found = _NUMBER.findall(printed)
    if len(numbers) != len(found):
        raise ValueError(f"ours: expected {len(found)} numbers, as in {printed!r}, got {len(numbers)}")
    remaining = iter(numbers)
    return _NUMBER.sub(lambda match: _write(float(next(remaining)), match[0]), printed)


def in_language(values: str, language: str) -> str:
    """Return what was printed, or the same computed here, with its numbers and lists in the format of a language.

    >>> in_language("35.333, 62,832", "pt-BR"), in_language("-0.5, 2", "zh-TW")
    ('35,333; 62.832', '−0.5, 2')
    """
    if separators(language)[0] == "," and any("." in number or "," in number for number in _NUMBER.findall(values)):
        values = values.replace("; ", " | ").replace(", ", "; ")  # commas are in the numbers
    return _NUMBER.sub(lambda match: localised(match[0], language), values)


class SourceCards(Content):
    """The source cards of one page."""

    def source_card(self, name: str, ours: Deferred[Ours] = None, **values: object) -> None:
        """Draw a card: `book.NAME`, what was printed, the same computed here, and `erratum.NAME`.

        A deferred value is computed once the card comes near the window.

        Raises:
            KeyError: if the chapter has no such row in assets/book/printed.json.
        """
        row = find_printed(self.name, name)
        if callable(ours):
            self.parts.lazy(f"book-{name}", lambda: draw_card(row, ours(), self.words, self.common, **values), 96)
        else:
            draw_card(row, ours, self.words, self.common, **values)

    def sources(self, cards: Mapping[str, Deferred[Ours]]) -> None:
        """Draw the page's other source cards in an expander; None for one without a value computed here."""

        def show() -> None:
            for name, ours in cards.items():
                self.source_card(name, ours)

        self.parts.expander("sources", self.common("sources"), ":material/menu_book:", show)


def draw_card(row: Printed, ours: Ours, words: Words, common: Words, **values: object) -> None:
    """Draw a card: what it is and where it was printed, both values, and the erratum."""
    written = as_printed(row.printed, ours)
    verdict = "run" if row.run else "agrees" if written == row.printed else "differs"
    mark = _MARKS[verdict]
    with st.container(key=f"book-{row.name}", gap=None):
        where = f":gray[:material/menu_book: {after_label(common('book'), escape(row.source))}]"
        st.markdown(f"{where}  \n{words(f'book.{row.name}', **values)}")
        shown = in_language(row.printed, words.language)
        lines = join_sentences((common(f"book.{row.kind}"), f"`{shown}`"))
        if row.quote and row.quote != shown:
            lines += f"  \n:gray[{common('book.quote', quote=escape(row.quote))}]"
            if translation := row.translations.get(words.language):
                lines += f"  \n:gray[{common('book.translated', quote=escape(translation))}]"
        if ours is not None:
            ours_written = join_sentences((common("book.ours"), f"`{in_language(written, words.language)}`"))
            lines += f"  \n{ours_written} {mark} {common(f'book.{verdict}')}"
        st.markdown(lines)
        if words.has(f"erratum.{row.name}"):
            erratum = after_label(common("book.erratum"), words(f"erratum.{row.name}", **values))
            st.caption(f":material/edit_note: {erratum}")


def _write(number: float, like: str) -> str:
    """Format a number with the decimals, commas and minus sign of another: 60611.2 like "62,832" is "60,611"."""
    decimals = len(like.partition(".")[2])
    shown = f"{number:,.{decimals}f}" if "," in like else f"{number:.{decimals}f}"
    if not float(shown.replace(",", "")):
        shown = shown.lstrip("-")
    return shown.replace("-", "−") if "−" in like else shown
