"""Every cache of the house has a bound: entries wherever it has a key, and bytes where a host says so."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

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


def test_a_cache_with_a_key_is_bounded() -> None:
    unbounded, found = [], list(cached())
    for where, function, decorator in found:
        keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
        bounds = [each.value for each in keywords if each.arg == _BOUNDS.get(name(decorator))]
        bound = bounds[0].value if bounds and isinstance(bounds[0], ast.Constant) else None
        if arguments(function) and not (isinstance(bound, int) and 1 <= bound <= 256):  # else it holds one value
            unbounded.append(where)
    assert len(found) > 10
    assert unbounded == []


def test_a_host_bounds_the_bytes_of_what_streamlit_keeps() -> None:
    hosted = tomllib.loads((ROOT / ".streamlit" / "hosted.toml").read_text(encoding="utf-8"))
    assert hosted["server"]["maxCacheDataSize"] == "64mb"
