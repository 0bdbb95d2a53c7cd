"""A chapter in another language: no English sentence and no English number comes from code, data or a library."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from google.protobuf.json_format import MessageToDict
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Block

import ui.text.words
from tests.english import decimal_points, grammar_words
from tests.pages.reading import components, figures
from ui.chapter.contents import all_chapters
from ui.text.markdown import escape
from ui.text.missing import is_due
from ui.text.numbers import separators
from ui.text.words import languages
from viz_core.view.components import unframe

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
    for name in ("sketch", "drawing", "typed_rows", "present", "seen", "tour"):
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


@pytest.mark.parametrize(
    ("language", "shown"), [("pt-BR", ("bota de cano curto", "vazio")), ("zh-TW", ("短靴", "空白"))]
)
def test_what_an_address_cannot_show_is_answered_in_words(
    open_page: OpenPage, language: str, shown: tuple[str, str]
) -> None:
    wrong = {"vt-sample": "<b>", "vt-without": "encoder-9.9"}
    notes = [caption.value for caption in open_page("vision-transformer", lang=language, **wrong).caption]
    for typed, name in zip(wrong.values(), shown, strict=True):
        assert [note for note in notes if escape(typed) in note and name in note], (typed, notes)
