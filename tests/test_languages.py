"""No English is left in the words of another language, but names and what the field says in English."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ui.text.words
from tests.english import grammar_words, latin_words, prose
from ui.text.words import ENGLISH, TEXT, languages
from viz_core.pretrained import available

CHAPTERS = sorted(path.stem for path in (TEXT / "zh-TW").glob("*.md"))
OTHERS = [name for name in languages() if name != ENGLISH]
# Sentences that models read, and all of them read English.
SAMPLES = ("start.", "preset.")
# Names of files keep to ASCII.
FILES = "stem"

# English words that a Chinese text says as they are.
SPOKEN = frozenset(
    # functions and types of code, and formats of files
    "softmax logit sigmoid tanh elu cos sin max torch transformers float bfloat json txt sacrebleu safetensors pickle "
    "config preprocessor tokenizer revision commit model type md "
    # terms given beside the Chinese ones, and of the sources
    "row column sink rollout pre-norm post-norm pre post norm linear scores distance skew bias buffer nat boxcar fill "
    "one hot top dropout masked delta cosine base eos gt lt turn table attention ii iii "
    # colour scales, keys of the keyboard
    "viridis magma cividis enter shift tab ctrl esc escape "
    # parts of names of models, and of people's names
    "large-v large google bert uncased base gpt oss vit explain et al press he li path hub windows load "
    # examples
    "cat dog".split()
)


def _texts(chapter: str, language: str) -> dict[str, str]:
    words = ui.text.words._read(chapter, language)
    labels = {f"label {name}": str(label) for name, label in words.front.get("controls", {}).items()}
    titles = {name: text for name, text in words.front.items() if isinstance(text, str)}
    texts = titles | labels | words.sections
    return {name: text for name, text in texts.items() if not name.startswith((*SAMPLES, FILES))}


def _ordinary() -> set[str]:
    """Words that stand in the English words of the Atlas in small letters: no names."""
    english = [path.stem for path in (TEXT / ENGLISH).glob("*.md")]
    texts = [text for chapter in english for text in _texts(chapter, ENGLISH).values()]
    return {word for text in texts for word in latin_words(text) if word.islower()}


def test_what_english_is_found() -> None:
    assert grammar_words("O token `the` é “of” $is$ {the} até lá") == []
    assert grammar_words("Isto is nada. The fim.") == ["is", "The"]
    assert latin_words("頭 softmax 的 Query 和 `key`，「the cat」") == ["softmax", "Query"]
    assert prose("[x](the) :material/the: *the cat* file.json").split() == ["[x", "·", "·", "·", "·"]


@pytest.mark.parametrize("chapter", CHAPTERS)
@pytest.mark.parametrize("language", OTHERS)
def test_no_english_sentence_is_left(chapter: str, language: str) -> None:
    found = {name: grammar_words(text) for name, text in _texts(chapter, language).items()}
    assert {name: words for name, words in found.items() if words} == {}


def test_no_english_word_is_left_in_chinese() -> None:
    ordinary = _ordinary()
    assert len(ordinary) > 1500
    found = {
        (chapter, name, word)
        for chapter in CHAPTERS
        for name, text in _texts(chapter, "zh-TW").items()
        for word in latin_words(text)
        if word.lower() in ordinary - SPOKEN
    }
    assert sorted(found) == []


def test_models_have_their_names_in_english_words() -> None:
    """What a model's card says and what the words say is the same."""
    common = ui.text.words._read("common", ENGLISH)
    for card in available():
        assert common(f"model-title.{card.name}") == card.title
        if common.has(f"licence.{card.name}"):
            assert common(f"licence.{card.name}") == card.licence


@pytest.mark.parametrize("language", OTHERS)
def test_a_readme_says_the_same_in_every_language(language: str) -> None:
    """The same chapters, commands and code in the same order; settings stand in the English one alone."""
    english, other = (
        (Path(__file__).resolve().parents[1] / name).read_text(encoding="utf-8")
        for name in ("README.md", f"README.{language}.md")
    )
    assert len(re.findall("^## ", other, re.MULTILINE)) == len(re.findall("^## ", english, re.MULTILINE))
    assert _commands(other) == _commands(english)


def _commands(readme: str) -> list[str]:
    """The first word of each line of its listings, without what comments say."""
    listings = re.findall(r"^```\w*\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
    lines = (line.partition("#")[0].split() for listing in listings for line in listing.splitlines())
    return [words[0] for words in lines if words]
