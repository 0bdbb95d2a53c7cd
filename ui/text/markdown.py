"""Escaping of text for Markdown."""

from __future__ import annotations

import re

_SIGNS = "\\`*_{}[]()#+-.!|<>~$:"


def escape(text: str) -> str:
    """Escape every character that Markdown could interpret."""
    return "".join(f"\\{c}" if c in _SIGNS else c for c in text)


def unescape(text: str) -> str:
    """Undo `escape`, for text that is not rendered as Markdown, an `alt` attribute for example."""
    return re.sub(rf"\\([{re.escape(_SIGNS)}])", r"\1", text)
