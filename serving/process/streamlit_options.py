"""Streamlit's options on a public server."""

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
    """Return the options of hosted.toml by full name ("server.maxUploadSize"), as `st.App.run` takes them.

    Environment variables take precedence, as with `streamlit run`, unless they are empty.

    Args:
        variables: name of each option's variable ({"server.port": "STREAMLIT_SERVER_PORT"}).
        kinds: type of each option ({"server.port": int}).

    Raises:
        SystemExit: with a line for each variable of a wrong type.
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
    """Whether the value has the TOML type: true is not a number, and 3 is a float too."""
    if kind not in _NEEDED:
        return True
    return isinstance(value, int | float if kind is float else kind) and (kind is bool or not isinstance(value, bool))


def _read(value: str) -> Any:
    """Parse a TOML value; booleans in any case, and text without quotes."""
    plain = value.lower() if value.lower() in ("true", "false") else value
    try:
        return tomllib.loads(f"value = {plain}")["value"]
    except tomllib.TOMLDecodeError:
        return value
