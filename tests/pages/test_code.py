"""The code a chapter shows: the book's own classes first, and each of them in some chapter."""

from __future__ import annotations

import ast
import importlib
from pathlib import Path
from typing import Any

import pytest

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
