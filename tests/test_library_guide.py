"""docs/library.md and docs/how-to: every example runs, by itself and as a cell of a notebook, and none is long."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tests.notebooks import printed, run_notebook, shows
from viz_core.runtime.assets import ASSETS

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = (DOCS / "library.md", *sorted((DOCS / "how-to").glob("*.md")))
MAX_LINES = 10
WIDGET = "application/vnd.jupyter.widget-view+json"


def text() -> str:
    """All pages with examples."""
    return "\n".join(page.read_text("utf-8") for page in PAGES)


def examples() -> list[tuple[str, str]]:
    """The heading an example stands under, and its code."""
    found, heading = [], ""
    for part in re.split(r"^(##? [^\n]+|```python\n.*?^```)$", text(), flags=re.MULTILINE | re.DOTALL):
        if part.startswith("#"):
            heading = part.lstrip("# ")
        elif part.startswith("```python"):
            found.append((heading, part.removeprefix("```python\n").removesuffix("```")))
    return found


@pytest.mark.parametrize("code", [pytest.param(code, id=f"{i} {name}") for i, (name, code) in enumerate(examples())])
def test_an_example_runs_by_itself(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [line for line in code.splitlines() if line.strip() and not line.startswith(("import ", "from "))]
    assert len(lines) <= MAX_LINES
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    names: dict[str, object] = {}
    exec(compile(tree, "example", "exec"), names)
    if last is not None:  # what a notebook would show
        value = eval(compile(ast.Expression(last.value), "example", "eval"), names)
        assert value is None or len(repr(value)) < 200


def test_the_guide_has_an_example_of_each_kind() -> None:
    code = "\n".join(code for _, code in examples())
    for name in (
        "load(",
        "record()",
        "attend(",
        "view(",
        ".save(",
        "load_trace(",
        "load_hub(",
        "instrument(",
        "torch_calls=",
        "adopt(",
        "Trace.merge(",
    ):
        assert name in code


def test_the_guide_loads_nothing_that_an_installation_lacks() -> None:
    """What `make test` installs besides would hide it."""
    named = re.findall(r'load_hub\("([^"]+)"\)', text())
    assert named
    assert set(named) <= {path.parent.name for path in (ASSETS / "hub").glob("*/config.json")}


def test_the_guide_runs_as_a_notebook(tmp_path: Path) -> None:
    codes = [code for _, code in examples()]
    outputs = run_notebook(new_notebook(cells=[new_code_cell(code) for code in codes]), tmp_path)
    assert printed(outputs[0]).startswith("Il est calme.\n")
    widgets = [WIDGET in shows(each) for each in outputs]
    views = [bool(re.search(r"\bview\(|^shown$", code.splitlines()[-1])) for code in codes]
    assert widgets == views
    assert sum(views) >= 5
    assert (tmp_path / "attention.html").stat().st_size > 50_000
