"""Streamlit's options where strangers visit."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PROFILE = Path(__file__).resolve().parents[1] / ".streamlit" / "hosted.toml"


def profile(variables: Mapping[str, str], environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """The options of hosted.toml by their full names ("server.maxUploadSize"), as `st.App.run` takes them.

    What the environment says comes first, as with `streamlit run`: `variables` are the ones to look for, by option
    ({"server.port": "STREAMLIT_SERVER_PORT"}).
    """
    sections = tomllib.loads(PROFILE.read_text(encoding="utf-8"))
    options = {f"{section}.{name}": value for section, names in sections.items() for name, value in names.items()}
    found = {name: _read(environment[variable]) for name, variable in variables.items() if variable in environment}
    return options | found


def _read(value: str) -> Any:
    """8501 or true as TOML has them, and a text without quotes."""
    try:
        return tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return value
