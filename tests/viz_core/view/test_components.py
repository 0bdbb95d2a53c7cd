"""The JavaScript modules of the components: all that is imported is there and used, and the linter is content."""

from __future__ import annotations

import json
import posixpath
import re
import subprocess
import sys
from pathlib import Path

import pytest

from viz_core.runtime.assets import AssetError
from viz_core.view.components import COMPONENTS, module_sources, read_component

ENTRIES = [f"{path.parent.name}/main.js" for path in sorted(COMPONENTS.glob("*/main.js"))] + [
    "attention_view/widget.js"
]
IMPORT = re.compile(r'^import .* from "(.+)";$', re.MULTILINE)


def imported(entry: str) -> set[str]:
    """The module and all that it imports, directly or not."""
    sources = module_sources(posixpath.dirname(entry))
    found: set[str] = set()
    ahead = [entry]
    while ahead:
        path = ahead.pop()
        if path not in found:
            found.add(path)
            targets = IMPORT.findall(sources[path])
            ahead += [posixpath.normpath(posixpath.join(posixpath.dirname(path), target)) for target in targets]
    return found


@pytest.mark.parametrize("entry", ENTRIES)
def test_a_component_has_all_that_it_imports(entry: str) -> None:
    name = posixpath.dirname(entry)
    assert imported(entry) <= set(module_sources(name))
    show = read_component(name, posixpath.basename(entry)).show
    sources, _ = json.JSONDecoder().raw_decode(show[show.index('({"') + 1 :].replace("<\\!--", "<!--"))
    assert sources == module_sources(name)
    assert show.endswith(f', "{entry}")')


def test_every_module_is_used_by_a_component() -> None:
    used = {path for entry in ENTRIES for path in imported(entry)}
    assert used == {path.relative_to(COMPONENTS).as_posix() for path in COMPONENTS.rglob("*.js")}


def test_imports_and_exports_are_written_in_the_way_that_the_loader_reads() -> None:
    for path in COMPONENTS.rglob("*.js"):
        code = path.read_text(encoding="utf-8")
        lines = [line for line in code.splitlines() if re.match(r"import\b|export .*\bfrom \"", line)]
        assert len(lines) == len(IMPORT.findall(code)), path


def test_sources_may_stand_in_a_script_of_a_page() -> None:
    for name in {posixpath.dirname(entry) for entry in ENTRIES}:
        assert not re.search(r"</|<!--", read_component(name).show)


def test_a_missing_entry_is_the_files_fault() -> None:
    with pytest.raises(AssetError, match="components/heatmap"):
        read_component("heatmap", "absent.js")


def lint(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    linter = Path(sys.executable).parent / "oxlint"
    settings = Path(__file__).resolve().parents[3] / ".oxlintrc.json"
    command = [str(part) for part in (linter, "-c", settings, "-f", "unix", "--deny-warnings", *arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_linter_has_nothing_to_say() -> None:
    result = lint(COMPONENTS)
    assert result.returncode == 0, result.stdout


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
    (tmp_path / "main.js").write_text(code, encoding="utf-8")
    (tmp_path / "b.js").write_text("export const b = 1;", encoding="utf-8")
    result = lint(tmp_path)
    assert result.returncode != 0
    assert rule in result.stdout
