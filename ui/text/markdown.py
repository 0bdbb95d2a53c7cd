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


def plain_text(markdown: str) -> str:
    """Return a line of Markdown without its markup, for what is read aloud; a formula as its letters.

    >>> plain_text("**Is** :blue[$w_v$] a [row](#row) of `W`?")
    'Is w_v a row of W?'
    """
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", markdown)
    text = re.sub(r":[a-z-]+\[((?:[^\[\]]|\[[^\[\]]*\])*)\]", r"\1", text)
    text = re.sub(r"\$+(.*?)\$+", lambda formula: _spoken(formula[1]), text)
    return unescape(re.sub(r"\*+|`|:material/\w+: ?", "", text))


def _spoken(formula: str) -> str:
    """Return a formula with fractions as a/b and commands by their names: alpha, sqrt(d)."""
    text = re.sub(r"\\top\b", "T", formula)
    for name, sign in (("cdot", "·"), ("times", "×"), ("[lr]?Vert", "‖")):
        text = re.sub(rf"\\{name}\b", sign, text)
    text = re.sub(r"\\[dt]?frac(\d)(\d)", r"\1/\2", text)
    text = re.sub(r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}", r"\1/\2", text)
    text = re.sub(r"\\sqrt\{([^{}]*)\}", r"sqrt(\1)", text)
    text = re.sub(r"\\(?:mathcal|mathrm|mathbf|text|operatorname|left|right|quad|[,;!])", "", text)
    return re.sub(r"[\\{}]", "", text)
