"""A home in which nothing can even be looked up: a folder that is none, or somebody else's."""

from __future__ import annotations

import os
from pathlib import Path

from serving.logs import log

NONE = "/nonexistent"
"""The home of accounts that have none (Debian policy, section 9.2.3)."""


def leave_no_home() -> None:
    """Have no home rather than one that cannot be asked whether it holds a file.

    Streamlit looks there for secrets before it answers anybody. It passes over a home that holds none, even one that is
    not there or is read-only; but with `HOME=/dev/null`, or another account's home, it answers 500 to every request.
    """
    try:
        (Path.home() / ".streamlit" / "secrets.toml").open("rb").close()
    except FileNotFoundError:
        return
    except (OSError, RuntimeError) as error:  # RuntimeError: the account is not known here
        log.warning(f"HOME: expected a folder to look for files in; this server does without one ({error})")
        os.environ["HOME"] = NONE
