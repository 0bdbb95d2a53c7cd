"""Escaping of text for Markdown."""

import re
from collections.abc import Iterable

from ui.text.numbers import Name

_SIGNS = "\\`*_{}[]()#+-.!|<>~$:"
_FULL_WIDTH = tuple("。：；，？！")


def escape(text: str) -> Name:
    """Escape every character that Markdown could interpret. A number in the text stays as it was written."""
    return Name("".join(f"\\{c}" if c in _SIGNS else c for c in text))


def unescape(text: str) -> str:
    """Undo `escape`, for text that is not rendered as Markdown, an `alt` attribute for example."""
    return re.sub(rf"\\([{re.escape(_SIGNS)}])", r"\1", text)


def after_label(label: str, text: str) -> str:
    """Return a text after its label in bold. Full-width punctuation, as in Chinese, needs no space after it.

    >>> after_label("Note.", "a text"), after_label("注意。", "一段文字")
    ('**Note.** a text', '**注意**。一段文字')
    """
    if label[-1:] in _FULL_WIDTH:  # outside, for Markdown closes no bold between it and a letter
        return f"**{label[:-1]}**{label[-1]}{text}"
    return f"**{label}** {text}"


def join_sentences(sentences: Iterable[str]) -> str:
    """Return sentences as one text, with a space in between unless the first ends with full-width punctuation.

    >>> join_sentences(["One.", "Two."]), join_sentences(["一。", "二。"])
    ('One. Two.', '一。二。')
    """
    text = ""
    for sentence in sentences:
        text += sentence if not text or text[-1] in _FULL_WIDTH else f" {sentence}"
    return text


def plain_text(markdown: str) -> str:
    """Return a line of Markdown without its markup, for what is read aloud; a formula as its letters.

    >>> plain_text("**Is** :blue[$w_v$] a [row](#row) of `W`?")
    'Is w_v a row of W?'
    """
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", markdown)
    text = re.sub(r":[a-z-]+\[((?:[^\[\]]|\[[^\[\]]*\])*)\]", r"\1", text)
    text = re.sub(r"\$+(.*?)\$+", lambda formula: _spoken(formula[1]), text)
    return unescape(re.sub(r"\*+|`|:material/\w+: ?", "", text))


_GREEK = dict(
    zip(
        "alpha beta gamma delta epsilon theta kappa lambda mu pi rho sigma tau phi omega Delta Omega".split(),
        "αβγδεθκλμπρστφωΔΩ",
        strict=True,
    )
)
_SIGNS_OF_TEX = {"cdot": "·", "times": "×", "[lr]?Vert": "‖", "approx": "≈", "sum": "Σ", "nabla": "∇", "partial": "∂"}
_SPOKEN = _GREEK | _SIGNS_OF_TEX | {"infty": "∞", "le": "≤", "ge": "≥", "ne": "≠", "dots": "…", "mid": "|"}


def _spoken(formula: str) -> str:
    """Return a formula with fractions as a/b, signs as Unicode has them, and functions by their names: sqrt(d)."""
    text = re.sub(r"\\top\b", "T", formula)
    for name, sign in _SPOKEN.items():
        text = re.sub(rf"\\{name}(?![a-zA-Z])", sign, text)
    for accent, mark in (("hat", "\u0302"), ("bar", "\u0304")):
        text = re.sub(rf"\\{accent} ?\{{?(\w)\}}?", rf"\1{mark}", text)
    text = re.sub(r"\\[dt]?frac(\w)(\w)", r"\1/\2", text)
    text = re.sub(r"\\[dt]?frac\{([^{}]*)\}\{([^{}]*)\}", r"\1/\2", text)
    text = re.sub(r"\\sqrt\{([^{}]*)\}", r"sqrt(\1)", text)
    text = re.sub(r"\\(?:mathcal|mathrm|mathbf|text|operatorname)(?![a-zA-Z]) ?", "", text)
    text = re.sub(r"\\(?:left|right|quad|[,;!])", "", text)
    text = re.sub(r"(?<![a-zA-Z]{2})-", "−", text)  # a hyphen within words stays
    return re.sub(r"[\\{}]", "", text)
