"""The HTML of the pages, in one language each."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from static_site.words import LANGUAGES, html_of, plain_text, read_words

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


def translator_page(words: Words, data: Mapping[str, Any], markup: str, app: str, embedded: bool = False) -> str:
    """The page of the translator.

    Args:
        data: what its script reads.
        markup: of the attention view, with its style.
        app: address of the app, or "".
        embedded: whether it shows one view only, for a frame in another page.
    """
    named = {str(beam): "greedy" if beam == 1 else f"beam {beam}" for beam in data["beams"]}
    searches = {beam: words.of("transformer", f"option.{option}") for beam, option in named.items()}
    presets = [words.of("translation", name) for name in data["presets"]]
    body = fill_template(
        "transformer",
        title=html.escape(words.title("transformer")),
        question=html.escape(words.of("transformer", "question")),
        definition=html_of(words.of("transformer", "definition")),
        formula=html_of(words.of("transformer", "formula")),
        no_script=words.of("site", "no-script"),
        text_label=words.label("transformer", "text"),
        placeholder=words.of("translation", "placeholder"),
        search_label=words.label("transformer", "search"),
        searches="".join(f'<option value="{beam}">{html.escape(text)}</option>' for beam, text in searches.items()),
        translate=words.of("translation", "translate"),
        examples_label=words.of("site", "examples"),
        examples=" ".join(
            f'<button type="button" lang="en" data-example="{text}">{text}</button>'
            for text in map(html.escape, presets)
        ),
        all_on=words.of("site", "all-on"),
        preparing=words.of("site", "preparing"),
        look=html.escape(words.of("transformer", "look.maps")),
        claims=words.of("common", "claims"),
        takeaways=html_of(words.of("transformer", "takeaways")),
        about=words.of("site", "about"),
        in_app=app_link(words, app, "transformer"),
        whole_page=words.of("site", "whole-page"),
        markup=markup,
    )
    page = ("transformer", "view" if embedded else "transformer")
    return whole_page(words, words.title("transformer"), words.of("transformer", "question"), body, data, *page)


def index_page(words: Words, cards: Sequence[tuple[str, int]]) -> str:
    """The table of contents: each page with the size of what it loads."""
    made = [
        _CARD.format(
            path=f"{name}.html",
            title=html.escape(words.title(name)),
            teaser=html.escape(words.of("home", f"teaser.{name}")),
            size=words.of("site", "size").replace("{size}", str(round(size / 1e6))) if size > 1e6 else "",
        )
        for name, size in cards
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
    return fill_template("root", title=title, languages=json.dumps(LANGUAGES), links=_language_links("", "", "index"))


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
        kind=here,
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
