"""The JavaScript modules of the components: all that is imported is there and used, and the linter is content."""

import json
import posixpath
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from viz_core.runtime.assets import AssetError
from viz_core.view.components import COMPONENTS, module_sources, read_component

MODULE_IMPORT = re.compile(r'^(?:import|export)\s[\w\s{},*$]*?from "([^"]+)";$', re.MULTILINE)  # as the loader reads it
ANY_IMPORT = re.compile(
    r"""^[ \t]*(?:import\s*(?:[\w${*"'(]|$)|export\s[\w\s{},*$]*\sfrom\b)|\bimport\(""", re.MULTILINE
)
ENTRIES = [f"{path.parent.name}/main.js" for path in sorted(COMPONENTS.glob("*/main.js"))] + [
    "attention_view/widget.js"
]


def imports_of(sources: Mapping[str, str], path: str) -> list[str]:
    """Return the paths that a module imports or passes on, over one line or several.

    Raises:
        ValueError: if it imports in a way that the loader cannot read, or a module that is not among the sources.
    """
    text = sources[path]
    rest = MODULE_IMPORT.sub("", text)
    if unread := ANY_IMPORT.search(rest):
        line = rest[unread.start() :].strip().splitlines()[0]
        raise ValueError(f'{path}: expected imports as `import NAMES from "./file.js";`, got {line!r}')
    found = [posixpath.normpath(posixpath.join(posixpath.dirname(path), each)) for each in MODULE_IMPORT.findall(text)]
    for target in found:
        if target not in sources:
            raise ValueError(f"{path}: expected imports of modules of the component, got {target!r}")
    return found


def imported(entry: str) -> set[str]:
    """The module and all that it imports, directly or not."""
    sources = module_sources(posixpath.dirname(entry))
    found: set[str] = set()
    ahead = [entry]
    while ahead:
        path = ahead.pop()
        if path not in found:
            found.add(path)
            ahead += imports_of(sources, path)
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
