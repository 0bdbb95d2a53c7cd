"""Words of the pages: those of the app, from assets/text, and their markup as HTML."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import frontmatter
import markdown
from latex2mathml.converter import convert

from viz_core.runtime.assets import ASSETS, reading

TEXT = ASSETS / "text"
ENGLISH, SHARED = "en", "shared"
LANGUAGES = tuple(sorted(path.name for path in TEXT.iterdir() if (path / "site.md").is_file()))

_FORMULA = re.compile(r"\$\$(.+?)\$\$|\$(.+?)\$", re.DOTALL)
_FUNCTION = re.compile(r"(<mi>(?:sin|cos)</mi>)")  # browsers put no space around them
_TO_PARTS = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(#part-[^)]*\)")


def read_words(name: str, language: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Front matter and sections of assets/text/LANGUAGE/NAME.md, else of shared.md; in English where one is missing."""
    front: dict[str, Any] = {}
    sections: dict[str, str] = {}
    for file, each in product((SHARED, name), (ENGLISH, language)):
        path = TEXT / each / f"{file}.md"
        if not path.is_file():
            continue
        with reading(path):
            post = frontmatter.loads(path.read_text(encoding="utf-8"))
        front = {**front, **post.metadata} if file == name else front
        parts = re.split(r"^## (.+)$", post.content, flags=re.MULTILINE)
        sections |= {title.strip(): body.strip() for title, body in zip(parts[1::2], parts[2::2], strict=True)}
    return front, sections


def sentence_of_error(english: str, language: str) -> str:
    """An error's sentence in a language; numbers are written by the browser."""
    _, sections = read_words("errors", language)
    return re.sub(r":[^{}]+\}", "}", sections.get(english, english))


def html_of(text: str) -> str:
    """Markdown with formulas as HTML and MathML. Links to parts of a figure stay as words."""
    formulas: list[str] = []

    def keep(found: re.Match[str]) -> str:
        block, inline = found.groups()
        latex = (block or inline).replace("{aligned}", "{align*}")  # as the converter knows it
        mathml = convert(latex, display="block" if block else "inline")
        formulas.append(_FUNCTION.sub(r'<mspace width="0.14em"/>\1<mspace width="0.14em"/>', mathml))
        return f"FORMULA{len(formulas) - 1}END"

    plain = _TO_PARTS.sub(r"\1", _FORMULA.sub(keep, text))
    return re.sub(r"FORMULA(\d+)END", lambda found: formulas[int(found[1])], markdown.markdown(plain))


def plain_text(text: str) -> str:
    """Markdown without its emphasis, for text that a script fills in."""
    return text.replace("**", "").replace("`", "")
