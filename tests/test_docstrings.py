"""Everything public of the library has a docstring."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from tests.source_files import ROOT, sources, tree

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


class Public(NamedTuple):
    """A class or function of the library, and the class it belongs to."""

    place: str
    node: ast.ClassDef | Function
    owner: ast.ClassDef | None


def sets_a_property(node: Function) -> bool:
    return any(ast.unparse(each).endswith(".setter") for each in node.decorator_list)


def public() -> Iterator[Public]:
    for path in sources("viz_core"):
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef | Function) and not node.name.startswith("_"):
                place = f"{path.relative_to(ROOT)}: {node.name}"
                yield Public(place, node, None)
                for inner in node.body if isinstance(node, ast.ClassDef) else ():
                    if not isinstance(inner, Function) or sets_a_property(inner):  # a property's getter says what it is
                        continue
                    if inner.name.startswith("__") or inner.name[0] != "_":
                        yield Public(f"{place}.{inner.name}", inner, node)


EVERYTHING = list(public())


CLASSES = [each.node for each in EVERYTHING if isinstance(each.node, ast.ClassDef)]


def is_inherited(each: Public) -> bool:
    """Whether a base class documents a method of this name."""
    bases = [ast.unparse(base).split("[")[0].split(".")[-1] for base in each.owner.bases] if each.owner else []
    owners = [node for node in CLASSES if node.name in bases]
    documented = {inner.name for base in owners for inner in base.body if isinstance(inner, Function)}
    return each.node.name in documented or any(is_inherited(Public(each.place, each.node, base)) for base in owners)


def test_everything_public_has_a_docstring() -> None:
    assert len(EVERYTHING) > 500
    bare = [
        each.place
        for each in EVERYTHING
        if not each.node.name.startswith("_")
        and not (ast.get_docstring(each.node) or "").strip()
        and "overload" not in map(ast.unparse, each.node.decorator_list)
        and not is_inherited(each)
    ]
    assert bare == []
