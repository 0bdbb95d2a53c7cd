"""Rules that hold across modules: who imports whom, and that modules do not change after they are built."""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections.abc import Iterator, Set
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def sources(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


@functools.cache
def imports(path: Path) -> tuple[str, ...]:
    """Every module a file imports, at the top or within a function, by its full name."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[str]:
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


# What each package may import (DESIGN.md, section 2, rule 1).
PACKAGES = {
    "viz_core": set[str](),
    "attention_atlas": {"viz_core"},
    "recipes": {"viz_core"},
    "serving": {"viz_core"},
    "ui": {"serving", "viz_core"},
    "pages": {"serving", "ui", "viz_core"},
}
MODULES = {*PACKAGES, "app", "hosted"}


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_imports_only_those_below_it(package: str) -> None:
    assert sources(package)
    assert offenders(package, *(MODULES - PACKAGES[package] - {package})) == []


# The packages of ui from bottom to top: each may import those before it.
UI_ORDER = ("streamlit_internals", "text", "compute", "widgets", "chapter", "blocks", "app")


def test_no_import_in_ui_goes_up() -> None:
    assert {path.name for path in (ROOT / "ui").iterdir() if (path / "__init__.py").is_file()} == set(UI_ORDER)
    for place, package in enumerate(UI_ORDER):
        assert offenders(f"ui/{package}", *(f"ui.{above}" for above in UI_ORDER[place + 1 :])) == []


def test_classes_of_a_chapter_have_no_base_of_ours() -> None:
    """A chapter is composed: what it is made of are attributes, not base classes."""
    bases = [
        f"{path.name}: {node.name}({ast.unparse(base)})"
        for path in sources("ui/chapter")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.ClassDef)
        for base in node.bases
    ]
    assert bases == []


def test_streamlit_is_known_to_pages_and_what_they_share() -> None:
    assert len(sources("viz_core")) > 20
    for folder in ("viz_core", "serving", "recipes"):
        assert offenders(folder, "streamlit") == []


def test_the_library_has_nothing_loose_on_its_top_level() -> None:
    assert {path.name for path in (ROOT / "viz_core").glob("*.py")} == {"__init__.py"}
    assert not list((ROOT / "pages").glob("*.*")), "with no file in pages/, Streamlit's older page discovery is blind"


def test_training_draws_nothing() -> None:
    assert sources("recipes")
    assert offenders("recipes", "plotly", "viz_core.figures", "viz_core.view") == []


def test_the_trace_imports_nothing_above_it() -> None:
    assert sources("viz_core/trace")
    used = {name for path in sources("viz_core/trace") for name in imports(path) if name.startswith("viz_core")}
    assert {name for name in used if not name.startswith(("viz_core.trace", "viz_core.torch_internals"))} == set()


def test_private_names_of_torch_are_touched_in_one_folder() -> None:
    users = [
        f"{path.relative_to(ROOT)}: {match}"
        for folder in PACKAGES
        for path in sources(folder)
        if "torch_internals" not in path.parts
        for match in re.findall(
            r"\btorch(?:\.\w+)*\._\w+|from torch(?:\.\w+)* import [^#\n]*\b_\w+", path.read_text("utf-8")
        )
    ]
    assert users == []


PUBLIC = (
    "streamlit",
    "streamlit.config",
    "streamlit.delta_generator",
    "streamlit.delta_generator.DeltaGenerator",
)
INTERNALS = {"streamlit": "ui/streamlit_internals", "uvicorn": "serving/uvicorn_internals"}


def app_sources() -> list[Path]:
    return [ROOT / "app.py", ROOT / "hosted.py", *(path for folder in PACKAGES for path in sources(folder))]


@pytest.mark.parametrize("library", INTERNALS)
def test_modules_that_a_library_does_not_document_are_imported_in_one_folder(library: str) -> None:
    used = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in app_sources()
        if not path.is_relative_to(ROOT / INTERNALS[library])
        for name in imports(path)
        if name.split(".")[0] == library and name not in PUBLIC
    ]
    assert used == []


def test_private_attributes_of_streamlit_and_uvicorn_are_touched_in_their_folders() -> None:
    """An attribute with an underscore is ours if some module of ours has it."""
    ours, used = {"_asdict", "_exit"}, set()  # of named tuples; of os
    for path in app_sources():
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                ours.add(node.name)
            elif isinstance(node, ast.Name | ast.Attribute) and isinstance(node.ctx, ast.Store):
                ours.add(node.id if isinstance(node, ast.Name) else node.attr)
            elif isinstance(node, ast.Attribute) and re.match(r"_[a-z]", node.attr):
                used.add((path.relative_to(ROOT), node.attr))
    folders = ("viz_core", "recipes", *INTERNALS.values())  # the first two touch torch and transformers
    others = {(path, name) for path, name in used if not any(path.is_relative_to(each) for each in folders)}
    assert {(path, name) for path, name in others if name not in ours} == set()


LESSONS = {path.name for path in (ROOT / "viz_core" / "lessons").iterdir() if (path / "__init__.py").is_file()}


def test_nothing_but_its_chapter_imports_a_lesson() -> None:
    assert {path.name for path in (ROOT / "pages").iterdir()} >= LESSONS
    users = [
        f"{path.relative_to(ROOT)} imports {name}"
        for package in PACKAGES
        for path in sources(package)
        for name in imports(path)
        for lesson in LESSONS
        if f"{name}.".startswith(f"viz_core.lessons.{lesson}.")
        and not path.is_relative_to(ROOT / "pages" / lesson)
        and not path.is_relative_to(ROOT / "viz_core" / "lessons" / lesson)
    ]
    assert users == []


def test_nothing_but_itself_imports_a_chapter() -> None:
    users = [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sources("pages")
        for name in imports(path)
        if name.startswith("pages.") and name.split(".")[1] != path.parent.name
    ]
    assert users == []


def folder_of(module: str) -> str:
    """The folder a module lies in; a chapter and a lesson are folders of their own."""
    parts = module.split(".")
    while parts and not (ROOT / Path(*parts)).is_dir():
        parts.pop()
    return ".".join(parts)


def circles(needs: dict[str, set[str]]) -> set[str]:
    """What is on a circle of a graph, or between two of them."""
    needs = dict(needs)
    while True:
        used = {name for found in needs.values() for name in found}
        free = [each for each in needs if each not in used or not needs[each] & needs.keys()]
        if not free:
            return set(needs)
        for each in free:
            del needs[each]


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b", "d"}, "d": set()}) == {"b", "c"}


def test_no_circle_of_folders() -> None:
    """Including imports inside functions and of types; viz_core/__init__.py alone opens every package."""
    needs: dict[str, set[str]] = {}
    for package in PACKAGES:
        for path in sources(package):
            here = folder_of(".".join(path.relative_to(ROOT).parent.parts))
            found = {folder_of(name) for name in imports(path) if name.split(".")[0] in PACKAGES}
            if path != ROOT / "viz_core" / "__init__.py":
                needs.setdefault(here, set()).update(found - {here, "viz_core", ""})
    assert circles(needs) == set()


# Circles that are still to be removed: the types of the one are fields of the other.
KNOWN_CIRCLE = {"recipes.export_text_model", "recipes.text_models"}


def test_no_circle_of_files() -> None:
    """Including imports inside functions and of types."""
    files = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for package in PACKAGES
        for path in sources(package)
    }
    needs = {module: files_needed(path, files.keys()) - {module, "viz_core"} for module, path in files.items()}
    needs["viz_core"] = set()
    assert circles(needs) <= KNOWN_CIRCLE


def files_needed(path: Path, files: Set[str]) -> set[str]:
    """The modules of these that a file imports; of a package it takes submodules from, the submodules."""
    found = set()
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.module, "imports are absolute"
            whole = (f"{node.module}.{alias.name}" for alias in node.names)
            found |= {name if name in files else node.module for name in whole}
    return found & files


def test_the_hub_is_for_the_model_lab() -> None:
    """Its libraries take seconds to import: no other chapter may bring them along."""
    users = [path for folder in ("viz_core", "ui", "pages") for path in sources(folder) if "hub" not in path.parts]
    found = {path for path in users if any(name.startswith("viz_core.hub") for name in imports(path))}
    allowed = {"pages/model_lab", "viz_core/lessons/model_lab", "viz_core/view/hub.py"}
    allowed.add("viz_core/__init__.py")  # imported when a name is used
    names = {str(path.relative_to(ROOT)) for path in found}
    assert {name for name in names if not name.startswith(tuple(allowed))} == set()


def test_importing_brings_nothing_unwanted_along() -> None:
    """Also not by way of another module: a fresh interpreter imports what trains, and then all the library."""

    def modules(folder: str) -> list[str]:
        names = [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in sources(folder)]
        return [name.removesuffix(".__init__") for name in names]

    program = (
        "import importlib, sys\n"
        f"for name in {modules('recipes')!r}: importlib.import_module(name)\n"
        "print('training brings', *({'streamlit', 'plotly'} & sys.modules.keys()))\n"
        f"for name in {modules('viz_core')!r}: importlib.import_module(name)\n"
        "print('the library brings', *({'streamlit'} & sys.modules.keys()))"
    )
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert [line.rstrip() for line in run.stdout.splitlines()] == ["training brings", "the library brings"]


def calls_the_kernel(node: ast.AST) -> bool:
    called = node.func if isinstance(node, ast.Call) else None
    return isinstance(called, ast.Attribute) and called.attr == "scaled_dot_product_attention"


def test_attention_is_computed_in_one_place() -> None:
    users = [
        str(path.relative_to(ROOT))
        for path in sources("viz_core")
        if any(calls_the_kernel(node) for node in ast.walk(tree(path)))
    ]
    assert users == ["viz_core/trace/attend.py"]


# Who may call torch's softmax: the formula itself; what is no attention at all; and lessons on scores that are given.
SOFTMAX = {
    "viz_core/trace/weights.py": "attention_weights, and the softmax of given scores",
    "viz_core/trace/softmax_calls.py": "names of what is heard where models make their weights themselves",
    "viz_core/hub/heads_off.py": "probabilities of words and labels",
    "viz_core/hub/lens.py": "probabilities of words",
    "viz_core/hub/model.py": "probabilities of words",
    "viz_core/hub/kinds/base.py": "probabilities of labels",
    "viz_core/hub/sinks.py": "probabilities of classes",
    "viz_core/hub/vision.py": "probabilities of classes",
    "viz_core/pretrained/classifier.py": "probabilities of classes",
    "viz_core/lessons/transformer/logit_lens.py": "probabilities of words",
    "viz_core/lessons/bahdanau/decoder_steps.py": "probabilities of words; the additive formula, pair by pair",
    "viz_core/lessons/bahdanau/broken.py": "additive scores that lack their tanh",
    "viz_core/lessons/multi_head/broken.py": "scores over the wrong root, and heads of columns dealt out",
    "viz_core/lessons/scoring_functions/mask_recipes.py": "other ways to mask, some of them wrong",
    "viz_core/lessons/scoring_functions/scaling.py": "random scores without queries and keys",
}


def calls_softmax(path: Path) -> bool:
    names = {"softmax", "Softmax"}
    return any(isinstance(node, ast.Attribute) and node.attr in names for node in ast.walk(tree(path)))


def test_one_way_from_queries_and_keys_to_weights() -> None:
    users = {str(path.relative_to(ROOT)) for path in sources("viz_core") if calls_softmax(path)}
    assert users == set(SOFTMAX)


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


TORCH_TYPES = {"device", "dtype", "float16", "bfloat16", "float32", "float64", "float", "bool", "long", "nn"}
CONVERSIONS = {"torch.tensor", "torch.from_numpy"}


def test_a_page_asks_and_never_computes() -> None:
    """Pages call no function of torch but conversions; a card is drawn beforehand, by `python -m pages.home.draw`."""
    found = {
        str(path.relative_to(ROOT))
        for path in sources("pages")
        for node in ast.walk(tree(path))
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and path.name != "card.py"
        if f"{node.value.id}.{node.attr}" not in CONVERSIONS
        if node.value.id in {"torch", "F"} and node.attr[:1].islower() and node.attr not in TORCH_TYPES
    }
    assert found == set()
