"""A text with its translation: every sentence of both, each translation under its sentence."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ui.text.bilingual import interleave, split_sentences
from ui.text.words import ENGLISH, languages, load_words

WORD = st.text("abcdefgz", min_size=1, max_size=6)
SENTENCE = st.lists(WORD, min_size=1, max_size=5).map(lambda words: " ".join(words).capitalize() + ".")
PARAGRAPH = st.lists(SENTENCE, min_size=1, max_size=4)


@given(PARAGRAPH, st.data())
def test_each_sentence_is_followed_by_its_translation(sentences: list[str], data: st.DataObject) -> None:
    translated = [f"T{number} {data.draw(SENTENCE)}" for number, _ in enumerate(sentences)]
    lines = [line for line in interleave(" ".join(sentences), " ".join(translated)).splitlines() if line]
    assert lines == [line for pair in zip(sentences, translated, strict=True) for line in (pair[0], f"> {pair[1]}")]


@given(st.lists(PARAGRAPH, min_size=1, max_size=3), st.lists(PARAGRAPH, min_size=1, max_size=3))
def test_nothing_is_lost_where_translations_have_other_sentences(
    first: list[list[str]], second: list[list[str]]
) -> None:
    texts = ["\n\n".join(" ".join(paragraph) for paragraph in paragraphs) for paragraphs in (first, second)]
    words = set(interleave(*texts).replace(">", "").split())
    assert words == {word for text in texts for word in text.split()}


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("The sum is $1. 0$. It holds for 3.5 tokens.", ["The sum is $1. 0$.", "It holds for 3.5 tokens."]),
        ("權重的總和是 1。每一列都是！對嗎？", ["權重的總和是 1。", "每一列都是！", "對嗎？"]),
        ("See [the proof. Here](#proof). Then go on.", ["See [the proof. Here](#proof).", "Then go on."]),
    ],
)
def test_sentences_end_outside_formulas_and_links(text: str, sentences: list[str]) -> None:
    assert split_sentences(text) == sentences


def test_items_formulas_and_tables_stay_what_they_are() -> None:
    english = "- One.\n- Two.\n\n$$x = 1$$\n\n| a |\n|---|"
    portuguese = "- Um.\n- Dois.\n\n$$x = 1$$\n\n| a |\n|---|"
    made = interleave(english, portuguese)
    assert made == "- One.\n\n  > Um.\n\n- Two.\n\n  > Dois.\n\n$$x = 1$$\n\n| a |\n|---|"


def test_bold_text_over_two_sentences_is_not_cut() -> None:
    assert interleave("**One. Two.**", "**Um. Dois.**") == "**One. Two.**\n\n> **Um. Dois.**"


@pytest.mark.parametrize("language", [name for name in languages() if name != ENGLISH])
def test_real_texts_lose_no_sentence(language: str) -> None:
    for chapter in ("queries-keys-values", "relative-projection", "transformer"):
        english, other = load_words(chapter, ENGLISH), load_words(chapter, language)
        for name in ("question", "definition", "takeaways"):
            made = _packed(interleave(english(name), other(name)))
            for text in (english(name), other(name)):
                for paragraph in text.split("\n"):
                    assert all(_packed(sentence) in made for sentence in split_sentences(paragraph))


def _packed(text: str) -> str:
    return re.sub(r"^ *(?:[-*] |> ?)+|\s", "", text, flags=re.MULTILINE)
