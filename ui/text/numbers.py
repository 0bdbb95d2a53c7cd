"""Numbers and lists as a language writes them, after Unicode's tables (CLDR)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache

from viz_core.runtime.numbers import ENGLISH, is_formatted_number, with_separators


class Name(str):
    """A name that looks like a number, of a head say: every language writes it alike."""


def localised(text: str, language: str) -> str:
    """The text with the separators of a language, if it is one number; else as it is.

    >>> localised("1,234.5 s", "pt-BR")
    '1.234,5 s'
    """
    return with_separators(text, separators(language))


def join_list(names: Iterable[object], language: str) -> str:
    """Names in a row as a language writes them.

    >>> listed(("a", "b", "c"), "pt-BR")
    'a, b e c'
    """
    from babel.lists import format_list  # only where another language than English is spoken

    return format_list([str(name) for name in names], locale=language.replace("-", "_"))


def series(value: object, language: str) -> str:
    """A value as text; several of them, names, numbers, or a name and its number each, in a row; or each by its name.

    >>> series(["dot 0.5", "additive 0.25"], "pt-BR"), series(["a", "b"], "zh-TW")
    ('dot 0,5; additive 0,25', 'a、b')
    >>> series({"a": 0.5, "b": [1, 2]}, "pt-BR"), series({"a": 0.5, "b": [1, 2]}, "zh-TW")
    ('a: 0,5; b: 1, 2', 'a：0.5；b：1、2')
    """
    if isinstance(value, Name):
        return value
    if isinstance(value, Mapping):
        colon, end = ("：", "；") if language != "en" and _comma(language) == "、" else (": ", "; ")
        return end.join(f"{name}{colon}{series(each, language)}" for name, each in value.items())
    if not isinstance(value, list | tuple):
        return localised(str(value), language)
    if language == "en":
        return ", ".join(map(str, value))
    said = [
        f"{name}{blank}{localised(last, language)}" for name, blank, last in (str(one).rpartition(" ") for one in value)
    ]
    between = _comma(language)
    return ("; " if between.strip() == separators(language)[0] and any("," in one for one in said) else between).join(
        said
    )


@lru_cache(maxsize=8)
def _comma(language: str) -> str:
    """What stands between the names of a long row."""
    from babel import Locale

    return (
        str(Locale.parse(language, sep="-").list_patterns["standard"]["middle"]).replace("{0}", "").replace("{1}", "")
    )


def plural(number: str, forms: Sequence[str], language: str) -> str:
    """The form of a word that goes by a number, as Python writes it; the last one by what is no number.

    >>> plural("1", ("token", "tokens"), "en")
    'token'
    """
    plain = number.replace(",", "").replace("−", "-")
    if not is_formatted_number(number) or not plain.lstrip("-").replace(".", "").isdigit():
        return forms[-1]
    if language == "en":
        return forms[0] if plain == "1" else forms[-1]
    category = _plural_rule(language)(Decimal(plain))
    return forms[0] if category == "one" else forms[-1]


@lru_cache(maxsize=8)
def _plural_rule(language: str) -> Callable[[Decimal], str]:
    from babel import Locale

    return Locale.parse(language, sep="-").plural_form  # type: ignore[no-any-return]


@lru_cache(maxsize=8)
def separators(language: str) -> str:
    """Before the first decimal, and between thousands: ",." in Portuguese."""
    if language == "en":
        return ENGLISH
    from babel import Locale

    symbols = Locale.parse(language, sep="-").number_symbols["latn"]
    return f"{symbols['decimal']}{symbols['group']}"
