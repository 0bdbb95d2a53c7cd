"""Streamlit's options where strangers visit."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

PROFILE = Path(__file__).resolve().parents[1] / ".streamlit" / "hosted.toml"


def profile(path: Path = PROFILE) -> dict[str, Any]:
    """The options of hosted.toml by their full names ("server.maxUploadSize"), as `st.App.run` takes them."""
    sections = tomllib.loads(path.read_text(encoding="utf-8"))
    return {f"{section}.{name}": value for section, options in sections.items() for name, value in options.items()}
