"""Numbers by language: separators change, nothing else does."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ui.text.numbers import Name, Point, join_list, localised, plural, powers_in_words, separators, series
from ui.text.words import Words, load_words


@pytest.mark.parametrize(
    ("text", "portuguese"),
    [
        ("0.5", "0,5"),
        ("1,234.5 s", "1.234,5 s"),
        ("−0.25", "−0,25"),
        ("12,345,678", "12.345.678"),
        ("33.4%", "33,4%"),
        ("1.2 × 10⁻⁷", "1.2 × 10⁻⁷"),
        ("4096", "4096"),
        ("3.5 apples", "3.5 apples"),
        ("I paid 3.50.", "I paid 3.50."),
        ("1.2.3", "1.2.3"),
        ("7.6 M", "7,6 M"),
        ("< 0.1%", "< 0,1%"),
        ("0.25–1.50", "0,25–1,50"),
        ("−0.31 (−0.52 … −0.10)", "−0,31 (−0,52 … −0,10)"),
        ("0,123", "0,123"),
        ("", ""),
    ],
)
def test_as_brazil_and_taiwan_write_them(text: str, portuguese: str) -> None:
    assert localised(text, "pt-BR") == portuguese
    assert localised(text, "zh-TW") == text


def test_a_number_below_zero_has_a_minus_sign() -> None:
    assert localised("-0.63", "pt-BR") == "−0,63"
    assert localised("-0.31 (-0.52 … -0.10)", "zh-TW") == "−0.31 (−0.52 … −0.10)"
    assert [localised("-0.63", "en"), localised("all-MiniLM", "pt-BR")] == ["−0.63", "all-MiniLM"]


@pytest.mark.parametrize(
    ("text", "english", "portuguese"),
    [
        ("1.3e-22", "1.3 × 10⁻²²", "1,3 × 10⁻²²"),
        ("-4.5e-07", "−4.5 × 10⁻⁷", "−4,5 × 10⁻⁷"),
        ("1e-09", "10⁻⁹", "10⁻⁹"),
        ("< 1e-05", "< 10⁻⁵", "< 10⁻⁵"),
        ("1.2e+02", "120", "120"),
        ("2.5e+04", "25,000", "25.000"),
        ("3e+06", "3 × 10⁶", "3 × 10⁶"),
        ("2e-05 (1e-05–3e-05)", "2 × 10⁻⁵ (10⁻⁵–3 × 10⁻⁵)", "2 × 10⁻⁵ (10⁻⁵–3 × 10⁻⁵)"),
    ],
)
def test_powers_of_ten_are_written_as_in_formulas(text: str, english: str, portuguese: str) -> None:
    assert [localised(text, language) for language in ("en", "pt-BR", "zh-TW")] == [english, portuguese, english]


@pytest.mark.parametrize(
    ("language", "expected"),
    [("en", r"1.3 × 10⁻²², $x = 1.3 \times 10^{-22}$"), ("pt-BR", r"1,3 × 10⁻²², $x = 1{,}3 \times 10^{-22}$")],
)
def test_a_power_of_ten_in_a_formula_is_latex(language: str, expected: str) -> None:
    assert Words("x", {}, {"a": "{b}, $x = {b}$"}, language)("a", b="1.3e-22") == expected


@pytest.mark.parametrize(
    ("language", "expected"),
    [
        ("en", "off by 1.3 times 10 to the power −22, allowed 10 to the power −9"),
        ("pt-BR", "off by 1,3 vezes 10 elevado a −22, allowed 10 elevado a −9"),
        ("zh-TW", "off by 1.3 乘以 10 的 −22 次方, allowed 10 的 −9 次方"),
    ],
)
def test_powers_of_ten_are_spoken(language: str, expected: str) -> None:
    common = load_words("common", language)
    text = Words("x", {}, {"a": "off by {b}, allowed {c}"}, language)("a", b="1.3e-22", c="1e-9")
    assert powers_in_words(text, common("power-times"), common("power")) == expected


def test_separators_as_plotly_wants_them() -> None:
    assert [separators(language) for language in ("en", "pt-BR", "zh-TW")] == [".,", ",.", ".,"]


def test_names_in_a_row() -> None:
    assert join_list(("a", "b", "c"), "pt-BR") == "a, b e c"
    assert join_list(("a", "b"), "zh-TW") == "a 和 b"


@pytest.mark.parametrize(
    ("value", "english", "portuguese", "chinese"),
    [
        (["a", "b", "c"], "a, b, c", "a, b, c", "a、b、c"),
        (["-0.5", "a -2"], "−0.5, a −2", "−0,5; a −2", "−0.5、a −2"),
        (["0.5", "1,024"], "0.5, 1,024", "0,5; 1.024", "0.5、1,024"),
        (("dot 0.5", "x: 2"), "dot 0.5, x: 2", "dot 0,5; x: 2", "dot 0.5、x: 2"),
        ([1, 2], "1, 2", "1, 2", "1、2"),
        (Point(["-0.5", "2.16"]), "−0.5, 2.16", "−0,5; 2,16", "−0.5, 2.16"),
        ([], "", "", ""),
        ("a, b 0.5", "a, b 0.5", "a, b 0.5", "a, b 0.5"),
        (Name("2.5"), "2.5", "2.5", "2.5"),
        (
            {"a 1.5": ["0.5", "0.25"], "b": "2.5 (1.0–4.0)"},
            "a 1.5: 0.5, 0.25; b: 2.5 (1.0–4.0)",
            "a 1.5: 0,5; 0,25; b: 2,5 (1,0–4,0)",
            "a 1.5：0.5、0.25；b：2.5 (1.0–4.0)",
        ),
    ],
)
def test_values_in_a_row(value: object, english: str, portuguese: str, chinese: str) -> None:
    assert [series(value, language) for language in ("en", "pt-BR", "zh-TW")] == [english, portuguese, chinese]
    assert Words("x", {}, {"a": "({b})"}, "pt-BR")("a", b=value) == f"({portuguese})"


@pytest.mark.parametrize(
    ("number", "english", "portuguese"),
    [
        ("0", "tokens", "token"),  # CLDR: Portuguese says 0 and 1 alike
        ("1", "token", "token"),
        ("2", "tokens", "tokens"),
        ("1,000", "tokens", "tokens"),
        ("1.0", "tokens", "token"),
        ("1.5", "tokens", "token"),
        ("many", "tokens", "tokens"),
        ("2 + 2", "tokens", "tokens"),
    ],
)
def test_words_go_by_their_number(number: str, english: str, portuguese: str) -> None:
    forms = ("token", "tokens")
    assert (plural(number, forms, "en"), plural(number, forms, "pt-BR")) == (english, portuguese)
    text = "{count} {count:token|tokens}, {count:is|are} $\\frac{a}{b}$, {other:a|b}"
    for language, form in (("en", english), ("pt-BR", portuguese)):
        verb = "is" if form == "token" else "are"
        formatted = Words("x", {}, {"a": text}, language)("a", count=number)
        assert formatted == f"{localised(number, language)} {form}, {verb} $\\frac{{a}}{{b}}$, {{other:a|b}}"


@given(st.floats(-1e9, 1e9), st.integers(0, 6))
def test_a_number_reads_back(number: float, digits: int) -> None:
    there = localised(f"{number:,.{digits}f}", "pt-BR")
    assert there.replace(".", "").replace(",", ".").replace("−", "-") == f"{number:.{digits}f}"


def test_words_fill_in_numbers_of_their_language() -> None:
    words = Words("x", {}, {"a": "{count} de {text}, $x = {count}$ e $$y = {count}$$, {count}"}, "pt-BR")
    formatted = words("a", count="1,234.5", text="3.5 maçãs")
    assert formatted == "1.234,5 de 3.5 maçãs, $x = 1.234{,}5$ e $$y = 1.234{,}5$$, 1.234,5"


@pytest.mark.parametrize(
    ("written", "shown"),
    [("1.5e+00", "1.5"), ("2.5e+00", "2.5"), ("1.25e+01", "12.5"), ("1.5e+03", "1,500"), ("1e5", "1e5")],
)
def test_powers_of_ten_keep_their_decimals_and_tokens_their_text(written: str, shown: str) -> None:
    assert localised(written, "en") == shown
