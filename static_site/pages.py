"""The HTML of the pages, in one language each."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from static_site.words import LANGUAGES, plain_text, read_words

TEMPLATES = Path(__file__).parent / "templates"

_CARD = '<li><a href="{path}"><b>{title}</b></a><p>{teaser}</p><p class="note">{size}</p></li>'


@dataclass(frozen=True)
class Words:
    """The words of one language that the pages share."""

    language: str

    def of(self, file: str, name: str) -> str:
        """A section of assets/text/LANGUAGE/FILE.md."""
        return read_words(file, self.language)[1][name]

    def label(self, file: str, control: str) -> str:
        """The label of a control."""
        return str(read_words(file, self.language)[0]["controls"][control])

    def title(self, file: str) -> str:
        """The title of a file's chapter."""
        return str(read_words(file, self.language)[0]["title"])


@dataclass(frozen=True)
class Card:
    """An entry of the table of contents.

    Attributes:
        name: of the page's file, without .html.
        size: what the page loads once, in bytes, beside the small files; 0 for a page without a model.
    """

    name: str
    title: str
    teaser: str
    size: int = 0

    @classmethod
    def of_chapter(cls, words: Words, name: str) -> Card:
        """The card of a page with the name, the title and the teaser of a chapter of the app."""
        return cls(name, words.title(name), words.of("home", f"teaser.{name}"))


def index_page(words: Words, cards: Sequence[Card]) -> str:
    """The table of contents: each page with the size of what it loads."""
    made = [
        _CARD.format(
            path=f"{card.name}.html",
            title=html.escape(card.title),
            teaser=html.escape(card.teaser),
            size=words.of("site", "size").replace("{size}", str(round(card.size / 1e6))) if card.size > 1e6 else "",
        )
        for card in cards
    ]
    about = words.of("site", "about")
    body = fill_template(
        "index",
        title=html.escape(words.title("site")),
        about=about,
        offline=words.of("site", "offline"),
        no_script=words.of("site", "no-script"),
        cards="".join(made),
    )
    return whole_page(words, words.title("site"), about, body, {"words": {}}, "")


def root_page() -> str:
    """The page at the root, which leads to the reader's language."""
    title = html.escape(Words("en").title("site"))
    return fill_template("root", title=title, languages=" ".join(LANGUAGES), links=_language_links("", "", "index"))


def script_words(words: Words, *names: tuple[str, str] | tuple[str, str, str]) -> dict[str, str]:
    """Words that a script fills in: (file, section), or (file, section, name in the script)."""
    return {name[-1]: plain_text(words.of(name[0], name[1])) for name in names}


def app_link(words: Words, app: str, chapter: str) -> str:
    """A link to a chapter of the app, where the app's address is known."""
    if not app:
        return ""
    address = html.escape(f"{app.rstrip('/')}/{chapter}", quote=True)
    return f'<a href="{address}" data-part="in-app">{words.of("site", "in-app")}</a>'


def whole_page(
    words: Words, title: str, description: str, body: str, data: Mapping[str, Any], script: str, here: str = "index"
) -> str:
    """A page with its head, its languages, its data and its script, whose name is that of its file without .js."""
    return fill_template(
        "page",
        language=words.language,
        kind="view" if here.startswith("view") else here,
        title=html.escape(title if script == "" else f"{title} · {words.title('common')}"),
        description=html.escape(description, quote=True),
        alternates="\n".join(
            f'<link rel="alternate" hreflang="{each}" href="../{each}/{here}.html">' for each in LANGUAGES
        ),
        atlas=html.escape(words.title("common")),
        language_label=words.of("common", "language"),
        languages=_language_links("../", words.language, here),
        body=body,
        data=json.dumps(data, ensure_ascii=False, sort_keys=True).replace("</", "<\\/"),
        script=f'<script type="module" src="../{script or "contents"}.js"></script>',
    )


def _language_links(folder: str, own: str, page: str) -> str:
    links = []
    for each in LANGUAGES:
        current = ' aria-current="page"' if each == own else ""
        name = Words(each).of("common", "language-name")
        links.append(f'<a href="{folder}{each}/{page}.html" lang="{each}" hreflang="{each}"{current}>{name}</a>')
    return " ".join(links)


def fill_template(name: str, **parts: str) -> str:
    """A template of static_site/templates with its parts."""
    return (TEMPLATES / f"{name}.html").read_text(encoding="utf-8").format(**parts)
