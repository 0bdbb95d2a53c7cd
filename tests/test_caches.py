"""Every cache of the house has a bound: entries wherever it has a key, and bytes where a host says so."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
_BOUNDS = {"cache_resource": "max_entries", "cache_data": "max_entries", "lru_cache": "maxsize"}


def cached() -> Iterator[tuple[str, ast.FunctionDef, ast.expr]]:
    """Every function with a decorator that remembers."""
    for folder in ("viz_core", "serving", "ui", "pages"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            for node in ast.walk(ast.parse(text)) if "cache" in text else ():
                if isinstance(node, ast.FunctionDef):
                    for decorator in node.decorator_list:
                        if name(decorator) in {*_BOUNDS, "cache"}:
                            yield f"{path.relative_to(ROOT)}:{node.name}", node, decorator


def name(decorator: ast.expr) -> str:
    called = decorator.func if isinstance(decorator, ast.Call) else decorator
    return called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")


def arguments(function: ast.FunctionDef) -> int:
    return len(function.args.args) + len(function.args.kwonlyargs)


CACHED = list(cached())


def test_there_are_caches_to_look_at() -> None:
    assert len(CACHED) > 10


@pytest.mark.parametrize(("where", "function", "decorator"), CACHED, ids=[where for where, _, _ in CACHED])
def test_a_cache_with_a_key_is_bounded(where: str, function: ast.FunctionDef, decorator: ast.expr) -> None:
    if not arguments(function):
        return  # it holds one value
    given = {keyword.arg: keyword.value for keyword in decorator.keywords} if isinstance(decorator, ast.Call) else {}
    bound = given.get(_BOUNDS.get(name(decorator), ""))
    assert isinstance(bound, ast.Constant), f"{where} has no bound"
    assert isinstance(bound.value, int)
    assert 1 <= bound.value <= 256


def test_a_host_bounds_the_bytes_of_what_streamlit_keeps() -> None:
    hosted = tomllib.loads((ROOT / ".streamlit" / "hosted.toml").read_text(encoding="utf-8"))
    assert hosted["server"]["maxCacheDataSize"] == "64mb"
