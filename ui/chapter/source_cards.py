"""The book says: what a source printed, what comes out here, and whether the two agree to the digits printed."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

import streamlit as st

from ui.text.markdown import escape
from ui.text.words import Words
from viz_core.runtime.assets import ASSETS, reading

Ours: TypeAlias = str | float | Sequence[float] | None
"""What comes out here: text, or the numbers in the order in which they were printed; None where nothing is ours."""

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
        name: `book.NAME` of the chapter's words says what it is, `erratum.NAME`, where there is one, what is wrong.
        chapter: on whose page it stands.
        source: where it was printed.
        printed: what was printed, number by number.
        run: whether it came out of one run of theirs, so that another need not agree.
    """

    name: str
    chapter: str
    source: str
    printed: str
    run: bool = False


@cache
def everything_printed() -> tuple[Printed, ...]:
    """The list: assets/book/printed.json."""
    with reading(PRINTED):
        return tuple(Printed(**row) for row in json.loads(PRINTED.read_text(encoding="utf-8")))


def find_printed(chapter: str, name: str) -> Printed:
    """The row of this name.

    Raises:
        KeyError: if the list has no such row.
    """
    for row in everything_printed():
        if (row.chapter, row.name) == (chapter, name):
            return row
    raise KeyError(f"{PRINTED.name} has no row {name!r} of {chapter}")


def as_printed(printed: str, ours: Ours) -> str:
    """What was printed, each number replaced by ours, written with as many digits; text stays as it is.

    So 0.26894 is "0.2689" where "0.2689" was printed, and agreeing is being the same text.

    Raises:
        ValueError: if there are more or fewer numbers than were printed.
    """
    if isinstance(ours, str) or ours is None:
        return ours or ""
    numbers = [ours] if isinstance(ours, int | float) else list(ours)
    found = _NUMBER.findall(printed)
    if len(numbers) != len(found):
        raise ValueError(f"ours: expected {len(found)} numbers, as in {printed!r}, got {len(numbers)}")
    left = iter(numbers)
    return _NUMBER.sub(lambda match: _write(float(next(left)), match[0]), printed)


def draw_card(row: Printed, ours: Ours, words: Words, common: Words, **values: object) -> None:
    """A small card: what it is and where, the two beside each other, the erratum."""
    written = as_printed(row.printed, ours)
    verdict = "run" if row.run else "agrees" if written == row.printed else "differs"
    mark = _MARKS[verdict]
    with st.container(key=f"book-{row.name}", gap=None):
        where = f":gray[:material/menu_book: **{common('book')}** {escape(row.source)}]"
        st.markdown(f"{where}  \n{words(f'book.{row.name}', **values)}")
        lines = f"{common('book.printed')} `{row.printed}`"
        if ours is not None:
            lines += f"  \n{common('book.ours')} `{written}` {mark} {common(f'book.{verdict}')}"
        st.markdown(lines)
        if words.has(f"erratum.{row.name}"):
            st.caption(f":material/edit_note: **{common('book.erratum')}** {words(f'erratum.{row.name}', **values)}")


def _write(number: float, like: str) -> str:
    """A number with the decimals, the commas and the sign of another: 60611.2 is "60,611" like "62,832"."""
    decimals = len(like.partition(".")[2])
    shown = f"{number:,.{decimals}f}" if "," in like else f"{number:.{decimals}f}"
    if not float(shown.replace(",", "")):
        shown = shown.lstrip("-")
    return shown.replace("-", "−") if "−" in like else shown
