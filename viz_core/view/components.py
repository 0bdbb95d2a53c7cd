"""The canvas components, each a folder of assets/components: view.html, style.css, main.js and the modules it imports.

In a file, a notebook and a Streamlit component no server answers imports of modules. So all modules of a component come
as texts within one script, and a dozen lines of JavaScript give each an address (`blob:`) before it is imported.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache

from viz_core.runtime.assets import ASSETS, reading

COMPONENTS = ASSETS / "components"
_STYLE_IMPORT = re.compile(r'^@import "([^"]+)";$', re.MULTILINE)
_LOADER = """(async (sources, entry) => {
  const urls = {};
  const urlOf = (path) => (urls[path] ??= URL.createObjectURL(new Blob([linked(path)], { type: "text/javascript" })));
  const linked = (path) => sources[path].replace(/^(import .* from )"(.+)";$/gm, (_, names, target) =>
    `${names}"${urlOf(new URL(target, `https://components/${path}`).pathname.slice(1))}";`
  ) + `\n//# sourceURL=${path}`;
  const { default: exported } = await import(urlOf(entry));
  Object.values(urls).forEach(URL.revokeObjectURL);
  return exported;
})"""


@dataclass(frozen=True)
class Component:
    """What a browser needs of a component.

    Attributes:
        markup: HTML.
        style: CSS, with what it imports.
        show: a JavaScript expression for a module, whose value is what the entry module exports by default: the
            function that draws the component.
    """

    markup: str
    style: str
    show: str


@lru_cache(maxsize=16)
def read_component(name: str, entry: str = "main.js") -> Component:
    """Read the component of this name, with `entry` as its entry module."""
    folder = COMPONENTS / name
    with reading(folder):
        markup, style = ((folder / file).read_text(encoding="utf-8") for file in ("view.html", "style.css"))
        style = _STYLE_IMPORT.sub(lambda found: (folder / found[1]).read_text(encoding="utf-8"), style)
        return Component(markup, style, _load(module_sources(name), f"{name}/{entry}"))


def module_sources(name: str) -> dict[str, str]:
    """Text of each module of a component and of the shared ones, by path within assets/components."""
    paths = (path for folder in (name, "shared") for path in sorted((COMPONENTS / folder).glob("*.js")))
    return {path.relative_to(COMPONENTS).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def _load(sources: dict[str, str], entry: str) -> str:
    if "\nexport default " not in sources[entry]:
        raise ValueError(f"{entry}: expected a default export, got none")
    texts = json.dumps(sources, ensure_ascii=False).replace("</", "<\\/").replace("<!--", "<\\!--")  # for <script>
    return f"await {_LOADER}({texts}, {json.dumps(entry)})"
