"""Folders of models as users type them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from viz_core.hub import HubError
from viz_core.hub.store import shown


def find_folder(typed: str, allowed: Iterable[Path]) -> Path:
    """The folder that a user typed, if it lies within one that the host allows."""
    roots = [root.resolve() for root in allowed]
    text = typed.strip()
    if text and "\0" not in text:
        for root in roots:
            try:
                folder = (root / text).resolve()  # an absolute path stays what it is
                found = any(folder.is_relative_to(root) for root in roots) and folder.is_dir()
            except (OSError, RuntimeError):  # a name too long, or links in a circle
                continue
            if found:
                return folder
    raise HubError("{typed} is not among the folders that this host allows.", typed=shown(typed))


def own_folder(typed: str) -> Path:
    """The folder that a user typed, anywhere on their own computer; `~` is their home."""
    text = typed.strip()
    try:
        folder = Path(text).expanduser().resolve()
        if text and "\0" not in text and folder.is_dir():
            return folder
    except (OSError, RuntimeError, ValueError):  # a name too long, no such user, links in a circle
        pass
    raise HubError("{typed} is not a folder on this computer. Check the path.", typed=shown(typed))
