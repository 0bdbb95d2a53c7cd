"""Terms in every language, Markdown, and Streamlit's own labels."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ui.text.markdown import escape, plain_text, unescape
from ui.text.translations import load_terms, term_table, terms_in, translations
from ui.text.words import ENGLISH, Words, languages, load_words, streamlit_labels


@pytest.mark.parametrize("language", languages())
def test_every_language_has_every_term_and_no_form_twice(language: str) -> None:
    terms = load_terms(language)
    assert set(terms) == set(load_terms(ENGLISH))
    forms = [form.casefold() for each in terms.values() for form in each]
    assert len(forms) == len(set(forms))
    assert all(form == form.strip() and form for form in forms)


def test_the_glossary_s_words() -> None:
    """Rows are 列 and columns are 欄 in Taiwan; a score is no punctuation mark."""
    assert translations("en")["rows"] == "linha · 列"
    assert translations("en")["column"] == "coluna · 欄"
    assert translations("pt-BR")["pontuação"] == "score · 評分"
    assert translations("zh-TW")["查詢"] == "query · consulta"


@pytest.mark.parametrize("language", languages())
def test_a_chapter_s_table_has_its_terms_only(language: str) -> None:
    words = load_words("attention-pooling", language)
    names = terms_in(words)
    assert "kernel" in names
    assert "patch" not in names
    lines = term_table(words).splitlines()
    assert len(lines) == len(names) + 2
    assert lines[0].startswith(f"| {load_words('common', language)('language-name')} |")
    assert {line.count("|") for line in lines} == {len(languages()) + 1}


def test_a_word_inside_another_is_no_term() -> None:
    words = Words("x", {}, {"question": "A narrow keyboard, with Patches."})
    assert terms_in(words) == ["patch"]


def test_signs_of_markdown_are_signs() -> None:
    assert escape("**a** $x$ <b> :red[c]") == r"\*\*a\*\* \$x\$ \<b\> \:red\[c\]"


@given(st.text())
def test_what_is_read_aloud_is_what_came(text: str) -> None:
    assert unescape(escape(text)) == text


def test_a_product_is_not_read_aloud_as_the_name_of_its_sign() -> None:
    assert plain_text(r"$2 \cdot 4096$ numbers") == "2 · 4096 numbers"
    assert plain_text(r"$\omega_0 = 1$, so $2\pi \approx 6.283$") == "ω_0 = 1, so 2π ≈ 6.283"
    assert plain_text(r"$\hat p = \frac1n \sum_i K$") == "p\u0302 = 1/n Σ_i K"
    assert plain_text(r"$\nabla_q \sum_i a_i k_i$, $-\log a_c$") == "∇_q Σ_i a_i k_i, −log a_c"
    assert plain_text(r"$\mathbf q^\top \mathbf k$, $\delta = 5$, $k_i - \bar k$") == "q^T k, δ = 5, k_i − k\u0304"
    assert plain_text(r"$\nabla_q \operatorname{sen} 2$") == "∇_q sen 2"


def test_a_number_that_somebody_typed_stays_as_it_was_typed() -> None:
    text = Words("x", {}, {"a": "{typed}, {measured}"}, "pt-BR")("a", typed=escape("1e9"), measured="1e+09")
    assert text == "1e9, 10⁹"


@pytest.mark.parametrize("language", [name for name in languages() if name != ENGLISH])
def test_each_is_translated_with_its_parts(language: str) -> None:
    labels = streamlit_labels(language)
    assert len(labels) == len(load_words("common", ENGLISH).group("streamlit"))
    for english, text in labels.items():
        assert text != english or english == "{label}: {name}"
        assert sorted(re.findall(r"\{\w+\}", text)) == sorted(re.findall(r"\{\w+\}", english)), english
