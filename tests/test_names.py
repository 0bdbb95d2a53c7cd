"""Identifiers use the field's, Python's or Streamlit's terms: none of these everyday words names anything.

Each stood for several things at once (a message, an argument, a cached value); STYLE.md lists what to use instead.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("viz_core", "attention_atlas", "recipes", "serving", "ui", "pages")
FILES = sorted([*(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")), *ROOT.glob("*.py")])
_WORDS = (
    "heard hear hearing overheard unheard said told asked kept spared spare lasting near moved stayed light look "
    "meanwhile patience patient impatient"
)
_FORBIDDEN = re.compile(rf"(?:^|_)(?:{'|'.join(_WORDS.split())})(?:_|$)")
_SNAKE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
ALLOWED = {
    # The standard terms: a light theme, and the patience of early stopping.
    "recipes/translation.py": {"patience"},
    "viz_core/view/theme.py": {"LIGHT"},
}
"""Exceptions, by file."""


def identifiers(tree: ast.AST) -> Iterator[str]:
    """Names that code defines: functions, their parameters, classes, variables and attributes."""
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield name
            case ast.arg(arg=name) | ast.alias(asname=str(name)):
                yield name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield name


def forbidden(name: str) -> bool:
    return bool(_FORBIDDEN.search(_SNAKE.sub("_", name).lower()))


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_identifiers_use_standard_terms(path: Path) -> None:
    found = {name for name in (path.stem, *identifiers(ast.parse(path.read_text("utf-8")))) if forbidden(name)}
    assert found - ALLOWED.get(str(path.relative_to(ROOT)), set()) == set()


def test_the_rule_sees_every_kind_of_name() -> None:
    code = """
import numpy as told
class KeptRows:
    asked_by: int
    def look(self, near, *, light=1):
        self.moved = [said for said in near]
"""
    found = {name for name in identifiers(ast.parse(code)) if forbidden(name)}
    assert found == {"told", "KeptRows", "asked_by", "look", "near", "light", "moved", "said"}
    assert not any(map(forbidden, ("nearest", "lightness", "look_up_table"[8:], "keeps", "removed", "highlight")))


def test_no_exception_is_out_of_date() -> None:
    """A name that is gone goes from the list, which only shrinks."""
    for file, names in ALLOWED.items():
        assert names <= set(identifiers(ast.parse((ROOT / file).read_text("utf-8")))), file
