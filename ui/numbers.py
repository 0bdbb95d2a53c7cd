"""Numbers as a language writes them: 1,234.5 is 1.234,5 in Portuguese."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

# A number as Python's format writes it, alone or with a unit: what was typed by a reader is left as it is.
_NUMBER = re.compile(r"[-−+≈~]?\d{1,3}(?:\d*|(?:,\d{3})*)(?:\.\d+)?(?:e[-−+]?\d+)?(?: ?(?:%|[kMG]?B|m?s|×))?")


def localised(text: str, language: str) -> str:
    """The text with the separators of a language, if it is one number; else as it is.

    >>> localised("1,234.5 s", "pt-BR")
    '1.234,5 s'
    """
    return text.translate(_separators(language)) if _NUMBER.fullmatch(text) else text


def listed(names: Iterable[object], language: str) -> str:
    """Names in a row as a language writes them.

    >>> listed(("a", "b", "c"), "pt-BR")
    'a, b e c'
    """
    from babel.lists import format_list  # only where another language than English is spoken

    return format_list([str(name) for name in names], locale=language.replace("-", "_"))


@lru_cache(maxsize=8)
def _separators(language: str) -> dict[int, str]:
    """From Unicode's tables (CLDR)."""
    from babel import Locale  # only where another language than English is spoken

    symbols = Locale.parse(language, sep="-").number_symbols["latn"]
    return str.maketrans({",": symbols["group"], ".": symbols["decimal"]})
