"""What a browser gets of the canvas components: markup, style, scripts, colours, words and bytes.

A component is a folder of assets/components: view.html, which begins with its style (a long one is in style.css),
main.js and the modules it imports. In a file, a notebook and a Streamlit component no server answers imports of
modules. So all modules of a component come within one script, each as a function that returns what it exports.

Numbers come as one sequence of bytes, which assets/components/shared/mount.js reads:

    4 bytes    length of the header, little-endian
    header     JSON, padded with spaces so that what follows starts at a multiple of 4
    sections   arrays, each at a multiple of 4; the header says where

Words are those of assets/text/LANGUAGE/attention-view.md, falling back to English.
"""

import json
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from posixpath import dirname, normpath
from typing import Any

import numpy as np

from viz_core.runtime.assets import ASSETS, reading

COMPONENTS = ASSETS / "components"
_STYLE_IMPORT = re.compile(r'^@import "([^"]+)";$', re.MULTILINE)
_IMPORT = re.compile(r'^import \{([^}]+)\} from "([^"]+)";$', re.MULTILINE)
_EXPORT = re.compile(r"^export (?:default |((?:async function|function|class|const) (\w+)\b(?!,)))", re.MULTILINE)


@dataclass(frozen=True)
class Component:
    """What a browser needs of a component."""

    markup: str  # HTML
    style: str  # CSS, with what it imports
    # a JavaScript expression for a module, whose value is what the entry module exports by default: the function that
    # draws the component
    show: str


@lru_cache(maxsize=16)
def read_component(name: str, entry: str = "main.js") -> Component:
    """Read the component of this name, with `entry` as its entry module."""
    folder = COMPONENTS / name
    with reading(folder):
        markup = (folder / "view.html").read_text(encoding="utf-8")
        if markup.startswith("<style>"):
            style, markup = markup.removeprefix("<style>\n").split("</style>\n", 1)
        else:
            style = (folder / "style.css").read_text(encoding="utf-8")
        style = _STYLE_IMPORT.sub(lambda found: (folder / found[1]).read_text(encoding="utf-8"), style)
        return Component(markup, style, link_modules(module_sources(name), f"{name}/{entry}"))


def module_sources(name: str) -> dict[str, str]:
    """Text of each module of a component and of the shared ones, by path within assets/components."""
    paths = (path for folder in (name, "shared") for path in sorted((COMPONENTS / folder).glob("*.js")))
    return {path.relative_to(COMPONENTS).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def link_modules(sources: Mapping[str, str], entry: str) -> str:
    """Return a JavaScript expression whose value is what the entry module exports by default.

    ValueError if modules import each other in a circle, one is missing, the entry exports nothing by default, or an
    import or export is written otherwise than `import { NAME, NAME as NAME } from "./file.js";`, `export default` and
    `export function`, `class` or `const` with a name.
    """
    linked: dict[str, str] = {}

    def link(path: str, importers: tuple[str, ...] = ()) -> None:
        if path not in sources:
            raise ValueError(f"{path}: expected one of the modules {', '.join(sources)}")
        if path in importers:
            raise ValueError(f"{path}: expected a module that none of its own imports imports, {' > '.join(importers)}")
        if path in linked:
            return

        def bound(found: re.Match[str]) -> str:
            target = normpath(f"{dirname(path)}/{found[2]}")
            link(target, (*importers, path))
            return f"const {{{found[1].replace(' as ', ': ')}}} = modules[{json.dumps(target)}];"

        code = _IMPORT.sub(bound, sources[path])
        names = [found[2] or "default: $default" for found in _EXPORT.finditer(code)]
        code = _EXPORT.sub(lambda found: found[1] or "const $default = ", code)
        if re.search(r"^(?:import|export)\b|^const \$default = (?:async )?function \w", code, re.MULTILINE):
            raise ValueError(f"{path}: expected imports and exports by name, a statement each")
        linked[path] = f"modules[{json.dumps(path)}] = (() => {{\n{code}return {{ {', '.join(names)} }};\n}})();\n"

    link(entry)
    if "$default" not in linked[entry]:
        raise ValueError(f"{entry}: expected a default export, got none")
    modules = "".join(linked.values())
    code = f"(() => {{\nconst modules = {{}};\n{modules}return modules[{json.dumps(entry)}].default;\n}})()"
    return code.replace("</script", "<\\/script").replace("<!--", "<\\!--")


class Sections:
    """Arrays one after the other, each at a multiple of 4 so that JavaScript can read it where it lies."""

    def __init__(self) -> None:
        self.data = bytearray()

    def add(self, array: np.ndarray) -> int:
        """Append an array; its offset from the first section."""
        offset = len(self.data)
        self.data += array.tobytes()
        self.data += bytes(-len(self.data) % 4)
        return offset


def frame(header: dict[str, Any], sections: Sections) -> bytes:
    """Header and sections as bytes."""
    # ASCII escapes carry any token, half a surrogate pair included.
    text = json.dumps(header, allow_nan=False, separators=(",", ":")).encode("ascii")
    text += b" " * (-len(text) % 4)
    return b"".join((struct.pack("<I", len(text)), text, sections.data))


def unframe(data: bytes) -> tuple[dict[str, Any], int]:
    """The header, and where the first section starts."""
    start = 4 + struct.unpack_from("<I", data)[0] if len(data) >= 4 else 4
    if len(data) < start:
        raise ValueError(f"data: expected a header of {start} bytes, got {len(data)} bytes in all")
    return json.loads(data[4:start]), start


# Colours and type where no app gives them: those of .streamlit/config.toml.
LIGHT = """
  --st-font: system-ui, sans-serif, "PingFang TC", "Microsoft JhengHei", "Noto Sans CJK TC", "Noto Sans TC";
  --st-heading-font: Georgia, "DejaVu Serif", serif, "Songti TC", "Microsoft JhengHei",
    "Noto Serif CJK TC", "Noto Serif TC";
  --st-heading-font-size-2: 1.25rem; --st-heading-font-weight-2: 700;
  --st-base-radius: 0.6rem; --st-button-radius: 0.6rem;
  --st-text-color: #1d2125; --st-heading-color: #1d2125; --st-primary-color: #0b6e66;
  --st-background-color: #fbfaf7; --st-border-color: #dcd8cf;
  --st-chart-categorical-colors: #0072b2,#d55e00,#009e73,#a34b82;
"""

DARK = """
  --st-text-color: #e7e5df; --st-heading-color: #e7e5df; --st-primary-color: #4fb8ac;
  --st-background-color: #14181a; --st-border-color: #353d41;
  --st-chart-categorical-colors: #56b4e9,#f08c42,#2fc79b,#d68fbb;
"""


TEXT = ASSETS / "text"
ENGLISH = "en"


def languages(folder: Path = TEXT) -> tuple[str, ...]:
    """Return the languages that have words, English first: the folders of assets/text."""
    return tuple(sorted((path.name for path in folder.iterdir() if path.is_dir()), key=ENGLISH.__ne__))


def view_words(language: str = ENGLISH) -> dict[str, str]:
    """Return every word of the view by its name, as templates with {placeholders}."""
    return _words("attention-view", language)


def group_labels(file: str, language: str = ENGLISH) -> dict[str, str]:
    """Return labels of a chapter's maps, queries and keys: its sections "view.NAME" by NAME."""
    words = _words(file, language).items()
    return {name.removeprefix("view."): text for name, text in words if name.startswith("view.")}


@lru_cache(maxsize=16)
def _words(file: str, language: str) -> dict[str, str]:
    path = TEXT / language / f"{file}.md"
    own = {}
    if path.is_file() or language == ENGLISH:
        with reading(path):
            parts = re.split(r"^## (.+)$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
            own = {name.strip(): body.strip() for name, body in zip(parts[1::2], parts[2::2], strict=True)}
    return own if language == ENGLISH else _words(file, ENGLISH) | own


WORD_NAMES = tuple(name for name in view_words() if name != "bad_link" and not name.startswith("notebook_"))
"""The words that the view draws; "bad_link" is said beside it, the others stand in the notebook that it saves."""
