"""What errors say, in every language: each sentence that code can raise has words there, with the same values."""

from __future__ import annotations

import ast
import pickle
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from ui.text.markdown import unescape
from ui.text.translations import explain, first_line, translate_error
from ui.text.words import ENGLISH, languages, sentences_of_errors
from viz_core.hub import HubError
from viz_core.pretrained import CheckpointError, TextError
from viz_core.runtime.assets import AssetError
from viz_core.runtime.refusal import RefusalError

ROOT = Path(__file__).resolve().parents[2]
CODE = [path for folder in ("viz_core", "serving", "ui", "pages") for path in sorted((ROOT / folder).rglob("*.py"))]
OTHERS = [name for name in languages() if name != ENGLISH]
_SENTENCE = re.compile(r"[A-Z{].* .*\.")


def _classes(trees: list[ast.Module]) -> set[str]:
    """RefusalError and all that are made of it."""
    found, before = {"RefusalError"}, 0
    while len(found) > before:
        before = len(found)
        for node in (node for tree in trees for node in ast.walk(tree) if isinstance(node, ast.ClassDef)):
            if any(isinstance(base, ast.Name) and base.id in found for base in node.bases):
                found.add(node.name)
    return found


def _sentences(tree: ast.Module, classes: set[str]) -> Iterator[str]:
    """The sentences a module gives them; where one goes by a name, all that stand in the module."""
    documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for call in ast.walk(tree):
        if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name) or call.func.id not in classes:
            continue
        given = call.args[0]
        if isinstance(given, ast.Constant):
            yield str(given.value)
        elif not isinstance(given, ast.Attribute):  # that of another error
            assert not isinstance(given, ast.JoinedStr), f"{ast.unparse(call)}: a literal, and values by name"
            texts = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and id(node) not in documents)
            yield from (text.value for text in texts if isinstance(text.value, str) and _SENTENCE.fullmatch(text.value))


def _of_attributes(trees: list[ast.Module], classes: set[str]) -> Iterator[str]:
    """The sentences of class attributes that an error is made of, as in HubError(self.too_long)."""
    nodes = [node for tree in trees for node in ast.walk(tree)]
    calls = (node for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name))
    names = {call.args[0].attr for call in calls if call.func.id in classes and isinstance(call.args[0], ast.Attribute)}
    for statement in (each for node in nodes if isinstance(node, ast.ClassDef) for each in node.body):
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        value = getattr(statement, "value", None)
        named = any(isinstance(target, ast.Name) and target.id in names for target in targets)
        if named and isinstance(value, ast.Constant):
            yield str(value.value)


@cache
def sentences() -> frozenset[str]:
    """Every sentence that an error of the library may say."""
    trees = [ast.parse(path.read_text(encoding="utf-8")) for path in CODE]
    classes = _classes(trees)
    found = {sentence for tree in trees for sentence in _sentences(tree, classes)}
    return frozenset(found.union(_of_attributes(trees, classes)))


@pytest.mark.parametrize("language", OTHERS)
def test_every_sentence_has_words(language: str) -> None:
    """And nothing is translated that nobody says any more."""
    english, other = sentences() | {"{detail}"}, sentences_of_errors(language)
    assert sorted(english - other.keys()) == []
    assert sorted(other.keys() - english) == []
    for sentence, words in other.items():
        wanted = set(re.findall(r"\{(\w+)", sentence))
        assert set(re.findall(r"\{(\w+)\}", words)) == wanted, sentence


@pytest.mark.parametrize(
    ("error", "language", "translation"),
    [
        (
            TextError("This text has {count:,} characters; at most {most:,} can be translated.", count=2001, most=2000),
            "pt-BR",
            "Este texto tem 2.001 caracteres; podem ser traduzidos no máximo 2.000.",
        ),
        (
            HubError(
                "{name} cannot be loaded: {detail}", name="own", detail=AssetError("{file}.md has no title", file="a")
            ),
            "zh-TW",
            "無法載入 own：a.md 沒有標題",
        ),
        (ValueError("heads: expected 1, got 2"), "zh-TW", "函式庫的英文訊息：heads: expected 1, got 2"),
        (ValueError("heads: expected 1, got 2"), "en", "heads: expected 1, got 2"),
        (
            CheckpointError("A sentence that nobody knows."),
            "pt-BR",
            "Mensagem da biblioteca, em inglês: A sentence that nobody knows.",
        ),
        (
            HubError("{typed} is not among the folders that this host allows.", typed="{most} $a$ 1.5"),
            "pt-BR",
            "{most} $a$ 1.5 não está entre as pastas que este servidor permite.",
        ),
        (HubError("{name} has no label {label!r}.", name="own", label="1.5"), "zh-TW", "own 沒有標籤「1.5」。"),
        (HubError("{name} has no label {label!r}.", name="own", label="1.5"), "pt-BR", "own não tem o rótulo “1.5”."),
        (
            HubError("{typed} is not a revision. Give a branch, a tag or a commit, or leave it empty.", typed="“a b”"),
            "zh-TW",
            "「a b」不是修訂版。請填分支、標籤或 commit，或留空。",
        ),
    ],
)
def test_an_error_is_told_in_a_language(error: Exception, language: str, translation: str) -> None:
    assert translate_error(error, language) == translation


def test_names_stand_in_a_row_as_a_language_writes_them() -> None:
    sentence = "This file is not a sound that can be read. Only {formats} sounds can be opened."
    error = RefusalError(sentence, formats=("WAV", "FLAC", "MP3"))
    assert "Only WAV, FLAC and MP3 sounds" in str(error)
    assert "WAV, FLAC e MP3" in translate_error(error, "pt-BR")
    assert "WAV、FLAC 和 MP3" in translate_error(error, "zh-TW")


def test_what_stands_on_a_page_is_no_markdown() -> None:
    assert explain(ValueError("*a* [b](c)")) == r"\*a\* \[b\]\(c\)"
    assert unescape(first_line(RuntimeError("out of memory\nat 0x1"))) == "out of memory"
    assert first_line(MemoryError()) == "MemoryError"


def test_an_error_comes_whole_through_a_pipe() -> None:
    sent = HubError("{name} is here: {count:,} of {all!r}", name="a", count=1000, all="b")
    come = pickle.loads(pickle.dumps(sent))
    assert type(come) is HubError
    assert (str(come), come.sentence, come.values) == ("a is here: 1,000 of 'b'", sent.sentence, sent.values)


def test_no_page_shows_an_error_in_english_alone() -> None:
    """str(error) stands where errors are put into words, and nowhere else on the way to a page."""
    shown = re.compile(r"str\((error|why)\)|\{(error|why)(!r)?\}")
    places = [path for folder in ("pages", "ui") for path in sorted((ROOT / folder).rglob("*.py"))]
    found = {path.relative_to(ROOT).as_posix() for path in places if shown.search(path.read_text(encoding="utf-8"))}
    assert found == {"ui/text/translations.py"}
