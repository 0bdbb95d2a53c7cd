"""Numbers and lists as a language writes them, after Unicode's tables (CLDR)."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from viz_core.runtime.numbers import ENGLISH, with_separators


def localised(text: str, language: str) -> str:
    """The text with the separators of a language, if it is one number; else as it is.

    >>> localised("1,234.5 s", "pt-BR")
    '1.234,5 s'
    """
    return with_separators(text, separators(language))


def listed(names: Iterable[object], language: str) -> str:
    """Names in a row as a language writes them.

    >>> listed(("a", "b", "c"), "pt-BR")
    'a, b e c'
    """
    from babel.lists import format_list  # only where another language than English is spoken

    return format_list([str(name) for name in names], locale=language.replace("-", "_"))


@lru_cache(maxsize=8)
def separators(language: str) -> str:
    """Before the first decimal, and between thousands: ",." in Portuguese."""
    if language == "en":
        return ENGLISH
    from babel import Locale

    symbols = Locale.parse(language, sep="-").number_symbols["latn"]
    return f"{symbols['decimal']}{symbols['group']}"
