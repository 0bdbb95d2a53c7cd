"""Components of our own: plain HTML, CSS and JavaScript from assets/components, no build step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

_HOME = Path(__file__).resolve().parent.parent / "assets" / "components"


def component(name: str, *scripts: str) -> Any:
    """Declare the component in assets/components/NAME; what comes back mounts it. Once, at import.

    Args:
        scripts: files without ".js", of NAME or, as "shared/FILE", of all components. Each holds one
            idea; they are joined into the one module Streamlit takes, so what is used comes first.
    """
    folder = _HOME / name
    files = [(_HOME if script.startswith("shared/") else folder) / f"{script}.js" for script in scripts]
    return st.components.v2.component(
        name,
        html=(folder / "view.html").read_text(encoding="utf-8"),
        css=(folder / "style.css").read_text(encoding="utf-8"),
        js="\n".join(file.read_text(encoding="utf-8") for file in files),
    )
