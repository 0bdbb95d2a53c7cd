"""JavaScript modules as one expression, for where nobody answers imports: a file, a notebook, Streamlit's components.

Each module becomes a function that is called once, after those it imports: what it does not export stays its own. Lines
of comments stay behind, which are a fifth of all.

    import { a, b as c } from "./other.js";     const { a, b: c } = m0;
    export function f() {}                      function f() {} ... return { f };
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

_IMPORT = re.compile(r'^import \{([^}]*)\} from "([^"]*)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (default )?(?=(?:async )?(?:function|const|let|class)\b *(\w*))", re.MULTILINE)
_COMMENT = re.compile(r"^ *(?://.*|/\*\*(?:(?!\*/)[\s\S])*\*/)\n", re.MULTILINE)  # lines of nothing else
_EITHER = re.compile(r"^(?:import|export)\b.*", re.MULTILINE)


class ModuleError(ValueError):
    """These modules do not fit together."""


@dataclass(frozen=True)
class Module:
    """A file of JavaScript.

    Attributes:
        path: where it lies.
        code: its text.
        imports: the names that it takes from each file.
        exports: what it gives; "default" among them.
    """

    path: Path
    code: str
    imports: dict[Path, tuple[str, ...]]
    exports: tuple[str, ...]


def in_order(entry: Path) -> tuple[Module, ...]:
    """The module and all that it imports, by whatever way: what is used comes before what uses it.

    Raises:
        ModuleError: if a file or a name that is imported is not there, imports go round in a circle, or an import or
            export is written in another way than above.
    """
    found: dict[Path, Module] = {}

    def visit(path: Path, way: tuple[Path, ...]) -> None:
        if path in way:
            circle = " -> ".join(each.name for each in (*way[way.index(path) :], path))
            raise ModuleError(f"imports: expected no circle, got {circle}")
        if path in found:
            return
        module = _read(path)
        for other, names in module.imports.items():
            visit(other, (*way, path))
            if absent := set(names) - set(found[other].exports):
                raise ModuleError(f"{path.name}: expected exports of {other.name}, got {', '.join(sorted(absent))}")
        found[path] = module

    visit(entry.resolve(), ())
    return tuple(found.values())


def as_expression(entry: Path) -> str:
    """A JavaScript expression that is what the module exports by default.

    Raises:
        ModuleError: if these are no such modules (`in_order`), or there is no default export.
    """
    modules = in_order(entry)
    if "default" not in modules[-1].exports:
        raise ModuleError(f"{entry.name}: expected a default export, got {', '.join(modules[-1].exports) or 'none'}")
    names = {module.path: f"m{i}" for i, module in enumerate(modules)}
    functions = [f"const {names[module.path]} = (() => {{\n{_body(module, names)}\n}})();" for module in modules]
    return "\n".join(["(() => {", *functions, f"return {names[modules[-1].path]}.default;", "})()"])


def _read(path: Path) -> Module:
    if not path.is_file():
        raise ModuleError(f"import: expected a file, got {path}")
    code = path.read_text(encoding="utf-8")
    understood = {found.start() for pattern in (_IMPORT, _EXPORT) for found in pattern.finditer(code)}
    for line in _EITHER.finditer(code):
        if line.start() not in understood:
            raise ModuleError(f"{path.name}: expected imports in braces and exports of declarations, got {line[0]!r}")
    imports = {
        (path.parent / found[2]).resolve(): tuple(name.split()[0] for name in found[1].split(",") if name.strip())
        for found in _IMPORT.finditer(code)
    }
    return Module(path, code, imports, tuple("default" if e[1] else e[2] for e in _EXPORT.finditer(code)))


def _body(module: Module, names: dict[Path, str]) -> str:
    def taken(found: re.Match[str]) -> str:
        return f"const {{{found[1].replace(' as ', ': ')}}} = {names[(module.path.parent / found[2]).resolve()]};"

    code = _IMPORT.sub(taken, _COMMENT.sub("", module.code))
    code = _EXPORT.sub(lambda found: "const exported = " if found[1] else "", code).strip()
    given = ", ".join("default: exported" if name == "default" else name for name in module.exports)
    return f"{code}\nreturn {{ {given} }};"
