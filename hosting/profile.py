"""Streamlit's options where strangers visit."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from streamlit import config

PROFILE = Path(__file__).resolve().parents[1] / ".streamlit" / "hosted.toml"


def profile(path: Path = PROFILE, environment: Mapping[str, str] = os.environ) -> dict[str, Any]:
    """The options of hosted.toml by their full names ("server.maxUploadSize"), as `st.App.run` takes them.

    What the environment says comes first (STREAMLIT_SERVER_PORT=80), as with `streamlit run`; secrets are left to
    Streamlit, which reads them from there itself.
    """
    sections = tomllib.loads(path.read_text(encoding="utf-8"))
    options = {f"{section}.{name}": value for section, names in sections.items() for name, value in names.items()}
    for name, option in config.get_config_options().items():
        if option.env_var in environment and not option.sensitive:
            options[name] = _read(environment[option.env_var])
    return options


def _read(value: str) -> Any:
    """8501 or true as TOML has them, and a text without quotes."""
    try:
        return tomllib.loads(f"value = {value}")["value"]
    except tomllib.TOMLDecodeError:
        return value
