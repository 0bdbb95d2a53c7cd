"""Code that chapters show, and the chapters in every language."""

import ast
import importlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Block

import ui.text.words
from tests.pages.reading import components, figures
from tests.source_files import decimal_points, grammar_words
from ui.chapter.contents import all_chapters
from ui.text.missing import is_due
from ui.text.numbers import separators
from ui.text.words import languages
from viz_core.view.components import unframe

PAGES = Path(__file__).resolve().parents[2] / "pages"
CHAPTERS = sorted(path.parent.name for path in PAGES.glob("*/page.py") if "chapter.code(" in path.read_text("utf-8"))


def shown_code(chapter: str) -> list[Any]:
    """What a page hands to `chapter.code`, found by its own imports; the page itself is not run."""
    tree = ast.parse((PAGES / chapter / "page.py").read_text(encoding="utf-8"))
    homes = {
        alias.asname or alias.name: (node.module or "", alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    (call,) = (
        node for node in ast.walk(tree) if isinstance(node, ast.Call) and ast.unparse(node.func) == "chapter.code"
    )
    used = {node.id for argument in call.args for node in ast.walk(argument) if isinstance(node, ast.Name)}
    names = {
        name: getattr(importlib.import_module(module), thing) for name, (module, thing) in homes.items() if name in used
    }
    arguments = ast.Expression(ast.Tuple(call.args, ast.Load()))
    return list(eval(compile(ast.fix_missing_locations(arguments), chapter, "eval"), names))


def test_every_chapter_shows_code() -> None:
    """Home, the walk and the review are not chapters."""
    assert set(CHAPTERS) == {path.parent.name for path in PAGES.glob("*/page.py")} - {"home", "walk", "review"}
    assert all(map(shown_code, CHAPTERS))


OpenPage = Callable[..., AppTest]

# What an element holds beside its words, and what a reader or a sample puts into it.
_NO_WORDS = re.compile(
    r"\.(id|formId|deferredFileId|default|value|queryParamKey|url|page|pageScriptHash|language|icon|key|type|format|"
    r"\w*colou?r(scale)?)$"
)
_CODE = ("code", "html", "bidi_component")
_SAMPLES = ("the black cat", "an old book", "the letter", "if it rains")
_OF_TORCH = "value cannot be converted to type"  # quoted, with who says it
# A token of the sentence that a model reads may stand anywhere, by itself: two such words make a sentence.
_SENTENCE = 2
_EXPONENT = re.compile(r"\de[-−+]\d")


def _strings(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _strings(each, f"{path}.{name}")
    elif isinstance(value, list | tuple):
        for each in value:
            yield from _strings(each, path)
    elif isinstance(value, str):
        yield path, value


def _elements(block: Block) -> Iterator[tuple[str, str]]:
    for child in block.children.values():
        if isinstance(child, Block):
            yield from _elements(child)
        elif child.type not in _CODE:
            yield from ((f"{child.type}{path}", text) for path, text in _strings(MessageToDict(child.proto)))


def visible_texts(app: AppTest) -> Iterator[tuple[str, str]]:
    """All that a page says, and where: its elements, figures with their axes, labels and hovers, and its components."""
    yield from _elements(app._tree)
    for figure in figures(app):
        yield from (
            (f"figure{path}", text) for path, text in _strings({**figure, "about": {**figure["about"], "plotly": ""}})
        )
    for name in ("attention_view", "heatmap"):
        for component in components(app, name):
            header, _ = unframe(component.bytes)
            words = header.get("words", {})
            yield from ((f"{name}{path}", text) for path, text in _strings(words))
    for name in ("sketch", "drawing", "present", "seen", "tour"):
        for component in components(app, name):
            if component.bytes:
                yield from ((f"{name}{path}", text) for path, text in _strings(json.loads(component.bytes)))


@pytest.mark.parametrize("chapter", all_chapters())
def test_a_page_says_nothing_in_english(open_page: OpenPage, chapter: str) -> None:
    """One language after the other: what a page computed for the first is there for the second."""
    for language in languages()[1:]:
        if any(is_due(ui.text.words._read(file, language)) for file in (chapter, "common")):
            continue
        comma = separators(language)[0] == ","
        found = {
            (path, text[:200])
            for path, text in visible_texts(open_page(chapter, lang=language))
            if not _NO_WORDS.search(path)
            and text not in _SAMPLES
            and _OF_TORCH not in text
            and (
                len(grammar_words(text)) >= _SENTENCE
                or (comma and decimal_points(text))
                or _EXPONENT.search(text)  # 1.2e-07, where 1.2 × 10⁻⁷ is meant
            )
        }
        assert sorted(found) == [], language
