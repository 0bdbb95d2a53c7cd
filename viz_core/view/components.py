"""The canvas components, each a folder of assets/components: view.html, style.css, main.js and what it imports."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from viz_core.runtime.assets import ASSETS, reading
from viz_core.view.modules import as_expression

COMPONENTS = ASSETS / "components"
_IMPORT = re.compile(r'^@import "([^"]+)";$', re.MULTILINE)


@dataclass(frozen=True)
class Component:
    """What a browser needs of a component.

    Attributes:
        markup: HTML.
        style: CSS, with what it imports.
        show: a JavaScript expression: the function that draws what it is given.
    """

    markup: str
    style: str
    show: str


@lru_cache(maxsize=16)
def read_component(name: str, entry: str = "main.js") -> Component:
    """The component of this name, by the script that is its way in.

    Raises:
        AssetError: if a file of it is missing, or its scripts do not fit together.
    """
    folder = COMPONENTS / name
    with reading(folder):
        markup, style = ((folder / file).read_text(encoding="utf-8") for file in ("view.html", "style.css"))
        style = _IMPORT.sub(lambda found: (folder / found[1]).read_text(encoding="utf-8"), style)
        return Component(markup, style, as_expression(folder / entry))
