"""Rules of the house that no single module can keep: who imports whom, and that modules stay as they were built."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def sources(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def imports(path: Path) -> Iterator[str]:
    """Every module a file imports, at the top or within a function, by its full name."""
    package = list(path.relative_to(ROOT).parts[:-1])
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def offenders(folder: str, *forbidden: str) -> list[str]:
    return [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sources(folder)
        for name in imports(path)
        if any(name == package or name.startswith(f"{package}.") for package in forbidden)
    ]


def test_the_library_stands_by_itself() -> None:
    assert len(sources("viz_core")) > 20
    assert offenders("viz_core", "streamlit", "ui", "pages", "app") == []


def test_hosting_knows_no_page() -> None:
    """What it hosts is handed to it by hosted.py, so it can be tested, and run beside a model, without Streamlit."""
    assert sources("hosting")
    assert offenders("hosting", "streamlit", "ui", "pages", "app") == []
    assert offenders("viz_core", "hosting") == []


def test_training_draws_nothing() -> None:
    assert sources("viz_core/training")
    assert offenders("viz_core/training", "plotly", "viz_core.figures") == []


def test_the_trace_stands_on_the_ground_floor() -> None:
    floor = ("viz_core.recorded", "viz_core.attention_call", "viz_core.trace")
    for name in floor:
        used = [used for used in imports(ROOT / f"{name.replace('.', '/')}.py") if used.startswith("viz_core")]
        assert [each for each in used if not each.startswith(floor)] == []


def test_the_hub_is_for_the_model_lab() -> None:
    """Its libraries take seconds to import: no other chapter may bring them along."""
    users = [path for folder in ("viz_core", "ui", "pages") for path in sources(folder) if "hub" not in path.parts]
    found = {path.stem for path in users if any(name.startswith("viz_core.hub") for name in imports(path))}
    assert {name for name in found if not name.startswith(("model_lab", "model-lab"))} == set()


def test_nothing_imports_pages() -> None:
    assert sources("pages")
    assert offenders("ui", "pages", "app") == []
    assert offenders("pages", "pages", "app") == []
    chapters = {path.stem for path in sources("pages")}
    assert not {name for path in sources("pages") for name in imports(path)} & chapters
    assert [name for name in imports(ROOT / "app.py") if name.split(".")[0] == "pages"] == []


@pytest.mark.parametrize(
    ("modules", "unwanted"),
    [
        ("viz_core", ["streamlit"]),
        ("viz_core/training", ["streamlit", "plotly"]),
    ],
)
def test_importing_brings_nothing_unwanted_along(modules: str, unwanted: list[str]) -> None:
    """Also not by way of another module: a fresh interpreter imports them all."""
    names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in sources(modules)]
    names = [name.removesuffix(".__init__") for name in names]
    program = (
        "import importlib, sys\n"
        f"for name in {names!r}: importlib.import_module(name)\n"
        f"print(*(m for m in {unwanted!r} if m in sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout.strip() == ""


def test_one_door_for_all_attention() -> None:
    users = [
        str(path.relative_to(ROOT))
        for path in sources("viz_core")
        if any(isinstance(n, ast.Attribute) and n.attr == "scaled_dot_product_attention" for n in ast.walk(tree(path)))
    ]
    assert users == ["viz_core/trace.py"]


# Modules assign nothing to self outside __init__


def module_classes() -> dict[str, tuple[Path, ast.ClassDef]]:
    """Every class of the library that is an nn.Module, straight or through another class of the library."""
    classes = {
        node.name: (path, node)
        for path in sources("viz_core")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ClassDef)
    }
    found: dict[str, tuple[Path, ast.ClassDef]] = {}
    while True:
        more = {
            name: place
            for name, place in classes.items()
            if name not in found
            and any(ast.unparse(base).split(".")[-1] in {"Module", *found} for base in place[1].bases)
        }
        if not more:
            return found
        found |= more


def assignments_to_self(node: ast.AST) -> Iterator[str]:
    """What is assigned, deleted or registered on self, or within something that self holds."""
    for inner in ast.walk(node):
        targets: list[ast.expr] = []
        if isinstance(inner, ast.Assign | ast.Delete):
            targets = list(inner.targets)
        elif isinstance(inner, ast.AugAssign | ast.AnnAssign | ast.For):
            targets = [inner.target]
        elif isinstance(inner, ast.With):
            targets = [item.optional_vars for item in inner.items if item.optional_vars]
        elif isinstance(inner, ast.Call):
            called = ast.unparse(inner.func)
            first = ast.unparse(inner.args[0]) if inner.args else ""
            changes = {"self.register_buffer", "self.register_parameter", "self.add_module", "self.__setattr__"}
            if called in changes or (called in {"setattr", "object.__setattr__", "delattr"} and first == "self"):
                yield ast.unparse(inner)
        yield from (ast.unparse(place) for target in targets for place in places(target) if belongs_to_self(place))


def places(target: ast.expr) -> Iterator[ast.expr]:
    """a, b and c of "a, (b, *c) = ..."."""
    if isinstance(target, ast.Tuple | ast.List):
        for part in target.elts:
            yield from places(part)
    else:
        yield target.value if isinstance(target, ast.Starred) else target


def belongs_to_self(place: ast.expr) -> bool:
    inside = False
    while isinstance(place, ast.Attribute | ast.Subscript):
        place, inside = place.value, True
    return inside and ast.unparse(place) == "self"


def test_no_module_changes_itself_after_init() -> None:
    classes = module_classes()
    assert {"MultiHeadAttention", "TransformerDecoder", "PositionalEncoding"} <= classes.keys()
    found = [
        f"{path.relative_to(ROOT)}: {name}.{method.name}: {change}"
        for name, (path, node) in classes.items()
        for method in node.body
        if isinstance(method, ast.FunctionDef) and method.name != "__init__"
        for change in assignments_to_self(method)
    ]
    assert found == []


def test_the_rule_about_self_can_be_broken() -> None:
    """The check itself sees every way a module might keep something of a call."""
    code = """
def forward(self, X):
    self.a = X
    c, (self.b, *d) = X
    self.d[0] = X
    self.e.f = X
    self.g += 1
    self.h: int = 1
    setattr(self, "i", X)
    self.register_buffer("j", X)
    del self.k
    for self.l in X: pass
    local = self.m
    X[self.n] = local
    self, X.o = X
"""
    assert list(assignments_to_self(ast.parse(code))) == [
        "self.a",
        "self.b",
        "self.d[0]",
        "self.e.f",
        "self.g",
        "self.h",
        "self.k",
        "self.l",
        "setattr(self, 'i', X)",
        "self.register_buffer('j', X)",
    ]
