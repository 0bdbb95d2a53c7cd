"""Code that pages show, predictions, and the chapters in every language."""

import ast
import importlib
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from google.protobuf.json_format import MessageToDict
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import Block

import ui.text.words
from pages.attention_pooling import parts as pooling
from pages.queries_keys_values import parts as names
from pages.relative_projection import parts as rotation
from pages.scoring_functions import parts as scores
from tests.pages.reading import components, figures, texts
from tests.source_files import decimal_points, grammar_words
from tests.visits import Visits
from ui.chapter.contents import all_chapters
from ui.text.markdown import escape
from ui.text.missing import is_due
from ui.text.numbers import separators
from ui.text.words import ENGLISH, languages, load_words
from ui.widgets.predictions import TOP, OnFigure, Truth
from viz_core.view.components import unframe

PAGES = Path(__file__).resolve().parents[2] / "pages"
CHAPTERS = sorted(path.parent.name for path in PAGES.glob("*/page.py") if "chapter.code(" in path.read_text("utf-8"))

# DESIGN.md, section 4: what the book has, and what its chapters are about.
BOOK = {
    "viz_core.attention": (
        "masked_softmax DotProductAttention AdditiveAttention MultiHeadAttention gaussian boxcar constant triangular "
        "epanechnikov nadaraya_watson"
    ),
    "viz_core.positional": (
        "angular_frequencies sinusoidal_table PositionalEncoding relative_projection LearnedPositionalEmbedding "
        "AbsolutePositionEmbedding1d RelativePositionEmbedding1d relative_to_absolute RelativePositionEmbedding2d "
        "apply_rotary alibi_slopes alibi_bias t5_relative_position_bucket T5RelativeBias"
    ),
    "viz_core.models": (
        "AddNorm PositionWiseFFN TransformerEncoderBlock TransformerEncoder TransformerDecoderBlock TransformerDecoder "
        "Seq2SeqEncoder Seq2SeqAttentionDecoder PatchEmbedding ViTMLP ViTBlock ViT"
    ),
    "viz_core.trace": "attend attention_weights",
}
FLOORS = ("viz_core.attention.", "viz_core.positional.", "viz_core.models.", "viz_core.trace.")
OTHER_FLOORS = {
    "model_lab": ("viz_core.hub.attention",),
    "heads": ("viz_core.maps.register",),
    "atom_mapping": ("viz_core.lab.atom_maps",),
}


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


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_the_first_panel_is_the_lesson(chapter: str) -> None:
    first = shown_code(chapter)[0]
    assert first.__module__.startswith(OTHER_FLOORS.get(chapter, FLOORS)), first


@pytest.mark.parametrize("chapter", CHAPTERS)
def test_nothing_is_shown_twice_and_the_kernel_last(chapter: str) -> None:
    names = [thing.__name__ for thing in shown_code(chapter)]
    assert len(set(names)) == len(names)
    assert "attend" not in names[:-1]


@pytest.mark.parametrize("package", BOOK)
def test_everything_of_the_book_is_shown_by_a_chapter(package: str) -> None:
    module = importlib.import_module(package)
    everywhere = [thing for chapter in CHAPTERS for thing in shown_code(chapter)]
    assert [name for name in BOOK[package].split() if getattr(module, name) not in everywhere] == []


HIDDEN = load_words("common", ENGLISH)("sketch.kept-back")
DRAWN: dict[tuple[str, str], tuple[OnFigure, Callable[[], Truth]]] = {
    ("queries-keys-values", "warm"): (names.THE_ROW, names.warm_weights),
    ("attention-pooling", "wide"): (pooling.THE_FIT, pooling.wide_fit),
    ("scoring-functions", "row"): (scores.THE_ROW, scores.row),
    ("relative-projection", "hand"): (rotation.THE_HAND, rotation.hand),
}


def numbers(app: AppTest, figure: str) -> np.ndarray:
    """Every coordinate and value that a figure has, in one row."""
    found = (np.ravel(trace[part]) for trace in figures(app, figure)[0]["data"] for part in "xyz" if part in trace)
    return np.concatenate([each.astype(float) for each in found if each.dtype.kind in "fiu"])


@pytest.mark.parametrize(("chapter", "name"), DRAWN)
def test_a_figure_keeps_its_answer_until_it_is_drawn(visits: Visits, chapter: str, name: str) -> None:
    on, find = DRAWN[chapter, name]
    words = load_words(chapter, ENGLISH)
    key = f"{words.prefix}-guess-{name}"
    values = find().values
    levels = [TOP * value if on.board.kind == "weights" else value for value in on.board.levels(values)]
    guess = "".join(f"{min(max(round(level), 0), TOP):02}" for level in levels)

    app = visits(chapter, **{f"{key}-drawn": "true"})
    assert figures(app, on.figure)[0]["about"]["alt"] == HIDDEN
    before = numbers(app, on.figure)
    assert "**Yes.**" not in texts(app)

    app = visits(chapter, **{f"{key}-drawn": "true", key: guess})
    assert figures(app, on.figure)[0]["about"]["alt"] != HIDDEN
    after = numbers(app, on.figure)
    revealed = [value for value in values if value and not np.isclose(before, value, atol=1e-6, rtol=0).any()]
    assert len(revealed) >= len(values) / 4, "the answer was there before"
    assert all(np.isclose(after, value, atol=0.05).any() for value in revealed)
    assert "**Yes.**" in texts(app)
    assert len(components(app, "sketch")) >= 1


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


@pytest.mark.parametrize(("language", "shown"), [("pt-BR", ("camiseta", "vazio")), ("zh-TW", ("T 恤", "空白"))])
def test_what_an_address_cannot_show_is_answered_in_words(
    open_page: OpenPage, language: str, shown: tuple[str, str]
) -> None:
    wrong = {"vt-sample": "<b>", "vt-without": "encoder-9.9"}
    notes = [caption.value for caption in open_page("vision-transformer", lang=language, **wrong).caption]
    for typed, name in zip(wrong.values(), shown, strict=True):
        assert [note for note in notes if escape(typed) in note and name in note], (typed, notes)
