"""A substitute for a home folder that cannot be read."""

from __future__ import annotations

import os
from pathlib import Path

from serving.logs import log

NONE = "/nonexistent"
"""The home of accounts that have none (Debian policy, section 9.2.3)."""


def replace_unusable_home() -> None:
    """Set HOME to a folder that does not exist where looking for a file in it raises an error.

    Streamlit looks there for secrets before it answers. A home that is missing, empty or read-only is no problem, but
    with `HOME=/dev/null`, or another account's home, Streamlit answers 500 to every request.
    """
    try:
        (Path.home() / ".streamlit" / "secrets.toml").open("rb").close()
    except FileNotFoundError:
        return
    except (OSError, RuntimeError) as error:  # RuntimeError: the account is not known here
        log.warning(f"HOME: expected a readable folder; this server runs without one ({error})")
        os.environ["HOME"] = NONE
