"""Terms of the field in every language, for a tooltip and for a chapter's table."""

from __future__ import annotations

import pytest

from ui.text.terms import load_terms, term_table, terms_in, translations
from ui.text.words import ENGLISH, Words, languages, load_words


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
