"""Numbers and lists in the format of a language (Unicode CLDR)."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import lru_cache

ENGLISH = ".,"
"""The decimal and the thousands separator, in the order of plotly's `separators`."""

# A number as Python's format writes it, alone, with a unit or with its interval. Typed text does not match, nor does
# "0,123", which has its separators already.
_ONE = r"(?:< )?[-−+≈~]?(?:[1-9]\d{0,2}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e[-−+]?\d+)?(?: ?(?:%|[kMG]?B|M|m?s|×))?"
_NUMBER = re.compile(rf"{_ONE}(?:–{_ONE})?(?: \({_ONE}(?:–| … ){_ONE}\))?")
_HYPHEN = re.compile(r"(?<!e)-(?=\d)")  # before a number, not before an exponent
_EXPONENT = re.compile(r"(\d+(?:\.\d+)?)e([-−+]\d+)")  # "1.2e-07"; a token may be "1e5"
_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
_DIGITS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
_POWER = re.compile(r"( × |(?<!\d))10(⁻?[⁰¹²³⁴⁵⁶⁷⁸⁹]+)")
_BETWEEN_SCRIPTS = re.compile(r"(?<=[\u4e00-\u9fff])(?=[A-Za-z0-9])|(?<=[A-Za-z0-9])(?=[\u4e00-\u9fff])")
_HALF_WIDTH = {0xFF01 + place: chr(0x21 + place) for place in range(94)} | {0x3000: " ", ord("、"): ","}
_DECIMAL_POINT = re.compile(r"(?<![\d.])(\d+)\.(\d+)(?![\d.])(?!\s*(?:em|ex|pt|cm|mm|mu)\b)")


def is_formatted_number(text: str) -> bool:
    """Whether a text is one number, as Python's format writes it, or an interval, with or without a unit."""
    return _NUMBER.fullmatch(text) is not None


def with_separators(text: str, separators: str) -> str:
    """Return the text with other separators and minus signs if it is one number, else unchanged.

    >>> with_separators("1,234.5 s", ",."), with_separators("-2.5 (-4.0–-1.0)", ",."), with_separators("1.2e-07", ",.")
    ('1.234,5 s', '−2,5 (−4,0–−1,0)', '1,2 × 10⁻⁷')
    """
    if not is_formatted_number(text):
        return text
    return _HYPHEN.sub("−", _EXPONENT.sub(_power, text).translate(str.maketrans(ENGLISH, separators)))


def _power(match: re.Match[str]) -> str:
    """A power of ten in superscripts, without a factor of 1; a number below a million in full."""
    factor, exponent = match[1], int(match[2].replace("−", "-"))
    if 0 <= exponent < 6:
        decimals = max(0, len(factor.partition(".")[2]) - exponent)
        return f"{float(f'{factor}e{exponent}'):,.{decimals}f}"
    return f"{'' if factor == '1' else f'{factor} × '}10{str(exponent).translate(_SUPERSCRIPTS)}"


def _latex_power(match: re.Match[str]) -> str:
    times = r" \times " if match[1] else ""
    return f"{times}10^{{{_exponent(match)}}}"


def powers_in_words(text: str, times: str, power: str) -> str:
    """Return the text with powers of ten in words: screen readers pass over superscripts.

    Args:
        times: stands between a factor and its power.
        power: the words of a power, with its {exponent}.

    >>> powers_in_words("off by 1.2 × 10⁻⁷", "times", "10 to the power {exponent}")
    'off by 1.2 times 10 to the power −7'
    """

    def in_words(match: re.Match[str]) -> str:
        spoken = power.replace("{exponent}", _exponent(match).replace("-", "−"))
        return f" {times} {spoken}" if match[1] else spoken

    return _POWER.sub(in_words, text)


def _exponent(match: re.Match[str]) -> str:
    return match[2].translate(_DIGITS)


def half_width(text: str) -> str:
    """Return typed text with full-width letters, digits, signs and spaces in half width, and "、" as a comma.

    >>> half_width("０．５，－１、２")
    '0.5,-1,2'
    """
    return text.translate(_HALF_WIDTH)


class Name(str):
    """A name that looks like a number, a head's for example: it is the same in every language."""


class Point(list[str]):
    """Coordinates: no list of names, so a comma is between them in Chinese too."""


def localised(text: str, language: str) -> str:
    """Return the text with the separators and the minus sign of a language if it is a number, else unchanged.

    >>> localised("1,234.5 s", "pt-BR"), localised("-0.5", "zh-TW")
    ('1.234,5 s', '−0.5')
    """
    return with_separators(text, separators(language))


def in_formula(latex: str, language: str, is_number: bool = False) -> str:
    r"""Return LaTeX with the separators of a language; lengths such as 0.5em keep their point.

    Args:
        is_number: whether the text is one number, as Python's format writes it; then thousands are separated too.

    >>> in_formula(r"\omega = 0.5", "pt-BR"), in_formula("1,234.5", "pt-BR", is_number=True)
    ('\\omega = 0{,}5', '1.234{,}5')
    >>> in_formula("1.2 × 10⁻⁷", "pt-BR")
    '1{,}2 \\times 10^{-7}'
    """
    latex = _POWER.sub(_latex_power, latex)
    decimal = separators(language)[0]
    if decimal == ".":
        return latex
    if is_number and is_formatted_number(latex):
        return localised(latex, language).replace(decimal, f"{{{decimal}}}")
    return _DECIMAL_POINT.sub(rf"\1{{{decimal}}}\2", latex)


def join_list(names: Iterable[object], language: str) -> str:
    """Return a list of names as a phrase of a language.

    >>> join_list(("a", "b", "c"), "pt-BR")
    'a, b e c'
    >>> join_list(("a", "b"), "zh-TW")
    'a 和 b'
    """
    from babel.lists import format_list  # English needs no babel

    phrase = format_list([str(name) for name in names], locale=language.replace("-", "_"))
    return _BETWEEN_SCRIPTS.sub(" ", phrase)


def series(value: object, language: str) -> str:
    """Return a value as text: a number or name, a list of them, or a mapping of names to them.

    >>> series(["dot 0.5", "additive 0.25"], "pt-BR"), series(["a", "b"], "zh-TW")
    ('dot 0,5; additive 0,25', 'a、b')
    >>> series({"a": 0.5, "b": [1, 2]}, "pt-BR"), series({"a": 0.5, "b": [1, 2]}, "zh-TW")
    ('a: 0,5; b: 1, 2', 'a：0.5；b：1、2')
    """
    if isinstance(value, Name):
        return value
    if isinstance(value, Mapping):
        colon, end = ("：", "；") if _comma(language) == "、" else (": ", "; ")
        return end.join(f"{name}{colon}{series(each, language)}" for name, each in value.items())
    if not isinstance(value, list | tuple):
        return localised(str(value), language)
    parts = [
        f"{name}{blank}{localised(last, language)}" for name, blank, last in (str(one).rpartition(" ") for one in value)
    ]
    between = ", " if isinstance(value, Point) else _comma(language)
    return ("; " if between.strip() == separators(language)[0] and any("," in one for one in parts) else between).join(
        parts
    )


@lru_cache(maxsize=8)
def _comma(language: str) -> str:
    """Return the separator of a long list."""
    if language == "en":
        return ", "
    from babel import Locale

    return (
        str(Locale.parse(language, sep="-").list_patterns["standard"]["middle"]).replace("{0}", "").replace("{1}", "")
    )


def plural(number: str, forms: Sequence[str], language: str) -> str:
    """Return the plural form for a number in Python's format; the last form if it is not a number.

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
    """Return the decimal and the thousands separator: ",." in Portuguese."""
    if language == "en":
        return ENGLISH
    from babel import Locale

    symbols = Locale.parse(language, sep="-").number_symbols["latn"]
    return f"{symbols['decimal']}{symbols['group']}"
