"""The canvas components, each a folder of assets/components: view.html, style.css, main.js and the modules it imports.

In a file, a notebook and a Streamlit component no server answers imports of modules. So all modules of a component come
as texts within one script, and a dozen lines of JavaScript give each an address (`blob:`) before it is imported.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from viz_core.runtime.assets import ASSETS, reading

COMPONENTS = ASSETS / "components"
_STYLE_IMPORT = re.compile(r'^@import "([^"]+)";$', re.MULTILINE)
_LOADER = r"""(async (sources, entry) => {
  const urls = {};
  const urlOf = (path) => (urls[path] ??= URL.createObjectURL(new Blob([linked(path)], { type: "text/javascript" })));
  const imports = /^((?:import|export)\s[\w\s{},*$]*?from )"([^"]+)";$/gm;
  const linked = (path) => sources[path].replace(imports, (_, names, target) =>
    `${names}"${urlOf(new URL(target, `https://components/${path}`).pathname.slice(1))}";`
  ) + `\n//# sourceURL=${path}`;
  const { default: exported } = await import(urlOf(entry));
  Object.values(urls).forEach(URL.revokeObjectURL);
  return exported;
})"""


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
        markup, style = ((folder / file).read_text(encoding="utf-8") for file in ("view.html", "style.css"))
        style = _STYLE_IMPORT.sub(lambda found: (folder / found[1]).read_text(encoding="utf-8"), style)
        return Component(markup, style, link_modules(module_sources(name), f"{name}/{entry}"))


def module_sources(name: str) -> dict[str, str]:
    """Text of each module of a component and of the shared ones, by path within assets/components."""
    paths = (path for folder in (name, "shared") for path in sorted((COMPONENTS / folder).glob("*.js")))
    return {path.relative_to(COMPONENTS).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def link_modules(sources: Mapping[str, str], entry: str) -> str:
    """Return a JavaScript expression whose value is what the entry module exports by default.

    Imports are written `import NAMES from "./file.js";`, as the loader follows them.
    """
    if "\nexport default " not in sources[entry]:
        raise ValueError(f"{entry}: expected a default export, got none")
    for_script = json.dumps(dict(sources), ensure_ascii=False).replace("</", "<\\/").replace("<!--", "<\\!--")
    return f"await {_LOADER}({for_script}, {json.dumps(entry)})"
