"""Numbers in the format of a language, terms in every language, Markdown, and Streamlit's own labels."""

import re
from pathlib import Path

import pytest
import streamlit
from hypothesis import given
from hypothesis import strategies as st

from ui.text.markdown import escape, plain_text, unescape
from ui.text.numbers import Name, Point, join_list, localised, plural, separators, series
from ui.text.translations import translations
from ui.text.words import ENGLISH, Words, languages, load_words, streamlit_labels


@pytest.mark.parametrize(
    ("text", "english", "portuguese"),
    [
        *((same, same, same) for same in ("", "4096", "3.5 apples", "I paid 3.50.", "1.2.3", "1.2 × 10⁻⁷", "1e5")),
        *((same, same, same) for same in ("0,123", "all-MiniLM")),
        ("0.5", "0.5", "0,5"),
        ("1,234.5 s", "1,234.5 s", "1.234,5 s"),
        ("33.4%", "33.4%", "33,4%"),
        ("7.6 M", "7.6 M", "7,6 M"),
        ("< 0.1%", "< 0.1%", "< 0,1%"),
        ("-0.63", "−0.63", "−0,63"),
        ("-0.31 (-0.52 … -0.10)", "−0.31 (−0.52 … −0.10)", "−0,31 (−0,52 … −0,10)"),
        ("1.3e-22", "1.3 × 10⁻²²", "1,3 × 10⁻²²"),
        ("1e-09", "10⁻⁹", "10⁻⁹"),
        ("1.2e+02", "120", "120"),
        ("2.5e+04", "25,000", "25.000"),
        ("3e+06", "3 × 10⁶", "3 × 10⁶"),
        ("2e-05 (1e-05–3e-05)", "2 × 10⁻⁵ (10⁻⁵–3 × 10⁻⁵)", "2 × 10⁻⁵ (10⁻⁵–3 × 10⁻⁵)"),
    ],
)
def test_numbers_are_written_as_a_language_writes_them(text: str, english: str, portuguese: str) -> None:
    assert [localised(text, language) for language in ("en", "pt-BR", "zh-TW")] == [english, portuguese, english]


@pytest.mark.parametrize(
    ("language", "text", "values", "expected"),
    [
        ("en", "{b}, $x = {b}$", {"b": "1.3e-22"}, r"1.3 × 10⁻²², $x = 1.3 \times 10^{-22}$"),
        ("pt-BR", "{b}, $x = {b}$", {"b": "1.3e-22"}, r"1,3 × 10⁻²², $x = 1{,}3 \times 10^{-22}$"),
        ("pt-BR", "{a}, {b}", {"a": escape("1e9"), "b": "1e+09"}, "1e9, 10⁹"),  # typed, measured
        (
            "pt-BR",
            "{a} de {b}, $x = {a}$ e $$y = {a}$$, {a}",
            {"a": "1,234.5", "b": "3.5 maçãs"},
            "1.234,5 de 3.5 maçãs, $x = 1.234{,}5$ e $$y = 1.234{,}5$$, 1.234,5",
        ),
    ],
)
def test_words_fill_in_numbers_of_their_language(
    language: str, text: str, values: dict[str, str], expected: str
) -> None:
    assert Words("x", {}, {"section": text}, language)("section", **values) == expected


@pytest.mark.parametrize(
    ("value", "english", "portuguese", "chinese"),
    [
        (["a", "b", "c"], "a, b, c", "a, b, c", "a、b、c"),
        (("dot 0.5", "x: 2"), "dot 0.5, x: 2", "dot 0,5; x: 2", "dot 0.5、x: 2"),
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
        ("1.5", "tokens", "token"),
        ("many", "tokens", "tokens"),
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


@given(st.floats(-1e9, 1e9), st.integers(0, 6), st.text())
def test_numbers_and_texts_read_back(number: float, digits: int, text: str) -> None:
    there = localised(f"{number:,.{digits}f}", "pt-BR")
    assert there.replace(".", "").replace(",", ".").replace("−", "-") == f"{number:.{digits}f}"
    assert unescape(escape(text)) == text


def test_lists_separators_and_terms_are_those_of_the_language() -> None:
    """Rows are 列 and columns are 欄 in Taiwan; a score is no punctuation mark."""
    assert [separators(language) for language in ("en", "pt-BR", "zh-TW")] == [".,", ",.", ".,"]  # as plotly wants them
    assert [join_list(("a", "b", "c"), "pt-BR"), join_list(("a", "b"), "zh-TW")] == ["a, b e c", "a 和 b"]
    assert [translations("en")[form] for form in ("rows", "column")] == ["linha · 列", "coluna · 欄"]
    assert translations("pt-BR")["pontuação"] == "score · 評分"
    assert translations("zh-TW")["查詢"] == "query · consulta"
    assert escape("**a** $x$ <b> :red[c]") == r"\*\*a\*\* \$x\$ \<b\> \:red\[c\]"


@pytest.mark.parametrize(
    ("formula", "spoken"),
    [
        (r"$2 \cdot 4096$ numbers", "2 · 4096 numbers"),
        (r"$\omega_0 = 1$, so $2\pi \approx 6.283$", "ω_0 = 1, so 2π ≈ 6.283"),
        (r"$\hat p = \frac1n \sum_i K$", "p\u0302 = 1/n Σ_i K"),
        (r"$\mathbf q^\top \mathbf k$, $\delta = 5$, $k_i - \bar k$", "q^T k, δ = 5, k_i − k\u0304"),
        (r"$\nabla_q \operatorname{sen} 2$", "∇_q sen 2"),
    ],
)
def test_a_product_is_not_read_aloud_as_the_name_of_its_sign(formula: str, spoken: str) -> None:
    assert plain_text(formula) == spoken


@pytest.mark.parametrize("language", [name for name in languages() if name != ENGLISH])
def test_each_is_translated_with_its_parts(language: str) -> None:
    labels = streamlit_labels(language)
    assert len(labels) == len(load_words("common", ENGLISH).group("streamlit"))
    for english, text in labels.items():
        assert text != english or english == "{label}: {name}"
        assert sorted(re.findall(r"\{\w+\}", text)) == sorted(re.findall(r"\{\w+\}", english)), english


SCRIPTS = Path(streamlit.__file__).parent / "static" / "static" / "js"


_FILLED = re.compile(r": |\{\w+\}| • |(?<= to )apply$|Ctrl|⌘")


def test_streamlit_writes_each_of_them() -> None:
    scripts = "\n".join(path.read_text(encoding="utf-8") for path in SCRIPTS.glob("*.js"))
    labels = load_words("common", ENGLISH).group("streamlit")
    pieces = {part for label in labels.values() for part in _FILLED.split(label) if part.strip(" +")}
    assert len(pieces) > 40
    assert sorted(part for part in pieces if part not in scripts) == []
