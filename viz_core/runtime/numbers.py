"""Numbers as a language writes them: 1,234.5 is 1.234,5 in Portuguese."""

from __future__ import annotations

import re

ENGLISH = ".,"
"""What stands before the first decimal, and between thousands; as plotly's `separators` have them."""

# A number as Python's format writes it, alone or with a unit: what was typed by a reader is left as it is.
_NUMBER = re.compile(r"[-−+≈~]?\d{1,3}(?:\d*|(?:,\d{3})*)(?:\.\d+)?(?:e[-−+]?\d+)?(?: ?(?:%|[kMG]?B|m?s|×))?")


def is_number(text: str) -> bool:
    """Whether a text is one number, as Python's format writes it, with or without a unit."""
    return _NUMBER.fullmatch(text) is not None


def with_separators(text: str, separators: str) -> str:
    """The text with other separators, if it is one number; else as it is.

    >>> with_separators("1,234.5 s", ",.")
    '1.234,5 s'
    """
    return text.translate(str.maketrans(ENGLISH, separators)) if is_number(text) else text
