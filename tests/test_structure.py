"""Who imports whom, which undocumented names are used where, that caches have bounds and benchmarks their parts."""

import ast
import importlib
import inspect
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import __main__ as command
from benchmarks import report
from benchmarks.report import Row
from tests.source_files import PACKAGES, ROOT, imports, offenders, sources, tree

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


def test_streamlit_is_known_to_pages_and_what_they_share() -> None:
    libraries = {"viz_core": ("streamlit", "plotly"), "serving": ("streamlit",), "recipes": ("plotly", "viz_core.view")}
    assert [offenders(folder, *names) for folder, names in libraries.items()] == [[], [], []]
    assert not list((ROOT / "pages").glob("*.*")), "with no file in pages/, Streamlit's older page discovery is blind"


def test_the_trace_imports_nothing_above_it() -> None:
    assert sources("viz_core/trace")
    used = {name for path in sources("viz_core/trace") for name in imports(path) if name.startswith("viz_core")}
    assert {name for name in used if not name.startswith(("viz_core.trace", "viz_core.torch_internals"))} == set()


_LESSONS = (ROOT / "viz_core" / "lessons").iterdir()
LESSONS = {path.stem for path in _LESSONS if path.suffix == ".py" or (path / "__init__.py").is_file()} - {"__init__"}


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
        and lesson not in {path.parent.name, path.stem}
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


def test_the_hub_is_for_the_model_lab() -> None:
    """Its libraries take seconds to import: no other chapter may bring them along."""
    users = [
        path for folder in ("viz_core", "ui", "pages") for path in sources(folder) if not {"hub", "lab"} & {*path.parts}
    ]
    found = {path for path in users if any(name.startswith("viz_core.hub") for name in imports(path))}
    allowed = {"pages/model_lab", "viz_core/view/hub.py"}
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
    "streamlit.testing.v1",
    "streamlit.testing.v1.AppTest",
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


@pytest.mark.parametrize("name", command.PARTS)
def test_every_part_can_be_measured_and_tried_out(name: str) -> None:
    module = importlib.import_module(f"benchmarks.{name}")
    assert set(module.QUICK) <= set(inspect.signature(module.measure).parameters)


def test_a_target_counts_in_units_or_in_the_peers_and_what_has_no_number_missed_it() -> None:
    some, none = (2.0,), ()
    rows = {
        "| look | 2 s (1 to 4) |  |  |  |  |": Row("look", "s", (1.0, 2.0, 4.0)),
        "| look | 2 s |  |  | <= 1 s | NO |": Row("look", "s", (2.0,), target=1),
        "| look | 2 s | it: 1,234 s | 617 | <= 1.5 x it | yes |": Row("look", "s", some, "it", (1234.0,), 1.5, True),
        "| look | too long | it: 2 s |  | <= 1 x it | NO |": Row("look", "s", none, "it", some, 1, True, "too long"),
        "| look | 2 s | it: 16 GB |  | <= 1 x it | NO |": Row("look", "s", some, "it", none, 1, True, "16 GB"),
    }
    assert report.table(list(rows.values())).splitlines()[2:] == list(rows)
