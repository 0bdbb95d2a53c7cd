"""Streamlit's options where strangers visit."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

PROFILE = Path(__file__).resolve().parents[2] / ".streamlit" / "hosted.toml"


_NEEDED = {bool: "true or false", int: "a whole number", float: "a number"}


def profile(
    variables: Mapping[str, str],
    environment: Mapping[str, str] = os.environ,
    kinds: Mapping[str, type] = MappingProxyType({}),
) -> dict[str, Any]:
    """The options of hosted.toml by their full names ("server.maxUploadSize"), as `st.App.run` takes them.

    What the environment says comes first, as with `streamlit run`, unless it is empty.

    Args:
        variables: the ones to look for, by option ({"server.port": "STREAMLIT_SERVER_PORT"}).
        kinds: what options must be ({"server.port": int}).

    Raises:
        SystemExit: with a line for each variable that holds something else.
    """
    sections = tomllib.loads(PROFILE.read_text(encoding="utf-8"))
    options = {f"{section}.{name}": value for section, names in sections.items() for name, value in names.items()}
    found = {name: _read(environment[variable]) for name, variable in variables.items() if environment.get(variable)}
    wrong = {name: kinds[name] for name, value in found.items() if name in kinds and not _is(value, kinds[name])}
    if wrong:
        raise SystemExit(
            "\n".join(
                f"{variables[name]}: expected {_NEEDED[kind]}, got {found[name]!r}" for name, kind in wrong.items()
            )
        )
    return options | found


def _is(value: Any, kind: type) -> bool:
    """As TOML has them: true is no number, and 3 is as good as 3.0."""
    if kind not in _NEEDED:
        return True
    return isinstance(value, int | float if kind is float else kind) and (kind is bool or not isinstance(value, bool))


def _read(value: str) -> Any:
    """8501 or true as TOML has them, however true is written, and a text without quotes."""
    plain = value.lower() if value.lower() in ("true", "false") else value
    try:
        return tomllib.loads(f"value = {plain}")["value"]
    except tomllib.TOMLDecodeError:
        return value
