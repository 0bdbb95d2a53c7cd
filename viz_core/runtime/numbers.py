"""Numbers in the format of a language: 1,234.5 is 1.234,5 in Portuguese."""

from __future__ import annotations

import re

ENGLISH = ".,"
"""The decimal and the thousands separator, in the order of plotly's `separators`."""

# A number as Python's format writes it, alone, with a unit or with its interval. Typed text does not match, nor does
# "0,123", which has its separators already.
_ONE = r"(?:< )?[-−+≈~]?(?:[1-9]\d{0,2}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[-−+]?\d+)?(?: ?(?:%|[kMG]?B|M|m?s|×))?"
_NUMBER = re.compile(rf"{_ONE}(?:–{_ONE})?(?: \({_ONE}(?:–| … ){_ONE}\))?")


def is_formatted_number(text: str) -> bool:
    """Whether a text is one number, as Python's format writes it, or an interval, with or without a unit."""
    return _NUMBER.fullmatch(text) is not None


def with_separators(text: str, separators: str) -> str:
    """Return the text with other separators if it is one number, else unchanged.

    >>> with_separators("1,234.5 s", ",."), with_separators("2.5 (1.0–4.0)", ",.")
    ('1.234,5 s', '2,5 (1,0–4,0)')
    """
    return text.translate(str.maketrans(ENGLISH, separators)) if is_formatted_number(text) else text
