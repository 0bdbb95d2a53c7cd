"""JavaScript modules read, put in order and made one expression; and those of the components."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from viz_core.view.components import COMPONENTS
from viz_core.view.modules import ModuleError, as_expression, in_order

COMPONENT_NAMES = sorted(path.parent.name for path in COMPONENTS.glob("*/main.js"))


def write(folder: Path, **files: str) -> Path:
    for name, code in files.items():
        (folder / f"{name}.js").write_text(code, encoding="utf-8")
    return folder / "main.js"


def test_what_is_used_comes_before_what_uses_it(tmp_path: Path) -> None:
    main = write(
        tmp_path,
        main='import { b } from "./b.js";\nimport { c } from "./c.js";\n\nexport default function () {}\n',
        b='import { c } from "./c.js";\n\nexport const b = c + 1;\n',
        c="export const c = 1;\n",
    )
    assert [module.path.stem for module in in_order(main)] == ["c", "b", "main"]


def test_the_expression_of_two_modules(tmp_path: Path) -> None:
    body = "export default function (x) {\n  return part(x) + LEAST;\n}\n"
    half = "/** Half of it. */\nexport function half(x) {\n  // all of it\n  return x / own; // less\n}\n"
    main = write(
        tmp_path,
        main=f'// What it is.\n\nimport {{ half as part, LEAST }} from "./b.js";\n{body}',
        b=f"export const LEAST = 3;\nconst own = 2;\n{half}",
    )
    assert as_expression(main) == (
        "(() => {\n"
        "const m0 = (() => {\nconst LEAST = 3;\nconst own = 2;\nfunction half(x) {\n  return x / own; // less\n}\n"
        "return { LEAST, half };\n})();\n"
        "const m1 = (() => {\nconst { half: part, LEAST } = m0;\n"
        "const exported = function (x) {\n  return part(x) + LEAST;\n}\nreturn { default: exported };\n})();\n"
        "return m1.default;\n})()"
    )


@pytest.mark.parametrize(
    ("other", "message"),
    [
        ('import { a } from "./absent.js";\nexport const b = 1;', "expected a file, got .*absent.js"),
        ("export const c = 1;", "main.js: expected exports of other.js, got b"),
        ('import { d } from "./main.js";\nexport const b = d;', "no circle, got main.js -> other.js -> main.js"),
        ('import * as all from "./main.js";\nexport const b = 1;', "expected imports in braces .*, got 'import \\* as"),
        ("const b = 1;\nexport { b };", "exports of declarations, got 'export { b };'"),
    ],
)
def test_modules_that_do_not_fit_together_are_refused(tmp_path: Path, other: str, message: str) -> None:
    main = write(tmp_path, main='import { b } from "./other.js";\n\nexport default function () {}\n', other=other)
    with pytest.raises(ModuleError, match=message):
        in_order(main)


def test_a_module_without_a_default_is_no_expression(tmp_path: Path) -> None:
    with pytest.raises(ModuleError, match="main.js: expected a default export, got b"):
        as_expression(write(tmp_path, main="export const b = 1;"))


def test_every_script_is_used_by_a_component() -> None:
    ways_in = [COMPONENTS / name / "main.js" for name in COMPONENT_NAMES] + [
        COMPONENTS / "attention_view" / "widget.js"
    ]
    used = {module.path for entry in ways_in for module in in_order(entry)}
    assert used == set(COMPONENTS.rglob("*.js"))


def lint(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    linter = Path(sys.executable).parent / "oxlint"
    settings = Path(__file__).resolve().parents[3] / ".oxlintrc.json"
    command = [str(part) for part in (linter, "-c", settings, "-f", "unix", "--deny-warnings", *arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_linter_has_nothing_to_say() -> None:
    said = lint(COMPONENTS)
    assert said.returncode == 0, said.stdout


@pytest.mark.parametrize(
    ("code", "rule"),
    [
        ("export default function () { return nobody; }", "no-undef"),
        ('import { b } from "./b.js";\nexport default function () {}', "no-unused-vars"),
        ("export default function () { const lost = 1; }", "no-unused-vars"),
        ('import { c } from "./b.js";\nexport default function () { return c; }', "import(named)"),
    ],
)
def test_the_linter_sees_what_must_not_be(tmp_path: Path, code: str, rule: str) -> None:
    write(tmp_path, main=code, b="export const b = 1;")
    said = lint(tmp_path)
    assert said.returncode != 0
    assert rule in said.stdout
