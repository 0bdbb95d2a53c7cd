"""Identifiers use the field's, Python's or Streamlit's terms: none of these everyday words names anything.

Each stood for several things at once (a message, an argument, a cached value); STYLE.md lists what to use instead.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDERS = ("viz_core", "attention_atlas", "recipes", "serving", "ui", "pages", "benchmarks", "tests")
FILES = sorted([*(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")), *ROOT.glob("*.py")])
SCRIPTS = sorted(
    path
    for folder in (ROOT / "assets" / "components", ROOT / "tests" / "browser")
    for path in folder.rglob("*")
    if path.suffix in (".js", ".css") and "vendor" not in path.parts
)
_WORDS = (
    "heard hear hearing overheard unheard said told asked kept spared spare lasting near moved stayed light look "
    "meanwhile patience patient impatient looks looked asks asking elsewhere hesitates"
)
_FORBIDDEN = re.compile(rf"(?:^|_)(?:{'|'.join(_WORDS.split())})(?:_|$)")
_SNAKE = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|-")
_COMMENT_OR_STRING = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)
ALLOWED = {
    # The standard terms: a light theme, and the patience of early stopping.
    "assets/components/attention_view/colours.js": {"light"},
    "assets/components/attention_view/widget.js": {"jpThemeLight"},  # of JupyterLab
    "assets/components/drawing/main.js": {"light"},
    "recipes/translation.py": {"patience"},
    "tests/viz_core/tasks/test_generating.py": {"look_up"},  # the task of this name
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


def script_identifiers(text: str, suffix: str) -> set[str]:
    """Names in JavaScript; classes and variables in CSS."""
    name = r"[A-Za-z_$][\w$]*" if suffix == ".js" else r"(?<=\.)[A-Za-z][\w-]*|(?<=--)[\w-]+"
    return set(re.findall(name, _COMMENT_OR_STRING.sub("", text)))


def names_in(path: Path) -> set[str]:
    text = path.read_text("utf-8")
    return set(identifiers(ast.parse(text))) if path.suffix == ".py" else script_identifiers(text, path.suffix)


def forbidden(name: str) -> bool:
    """Whether a name holds one of the words; names of tests are sentences."""
    return not name.startswith("test_") and bool(_FORBIDDEN.search(_SNAKE.sub("_", name).lower()))


def test_identifiers_use_standard_terms() -> None:
    offenders = {}
    for path in (*FILES, *SCRIPTS):
        file = str(path.relative_to(ROOT))
        found = {name for name in (path.stem.removeprefix("test_"), *names_in(path)) if forbidden(name)}
        offenders[file] = sorted(found - ALLOWED.get(file, set()))
    assert {file: names for file, names in offenders.items() if names} == {}


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
    assert not any(map(forbidden, ("nearest", "lightness", "keeps", "removed", "highlight", "test_what_is_said")))


def test_the_rule_sees_names_in_scripts() -> None:
    script = """// said
/** kept */
const toldOf = (near) => { view.lookAt = "moved"; };"""
    assert set(filter(forbidden, script_identifiers(script, ".js"))) == {"toldOf", "near", "lookAt"}
    sheet = "/* said */ .view .kept-row, .light { color: var(--near-black); transition: moved 1s; }"
    assert set(filter(forbidden, script_identifiers(sheet, ".css"))) == {"kept-row", "light", "near-black"}


def test_no_exception_is_out_of_date() -> None:
    """A name that is gone goes from the list, which only shrinks."""
    for file, names in ALLOWED.items():
        assert names <= names_in(ROOT / file), file
