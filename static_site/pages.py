"""The HTML of the pages, in one language each, and their words: those of the app, from assets/text."""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import frontmatter
import markdown
from latex2mathml.converter import convert

from static_site.files import LANGUAGES
from ui.text.words import ENGLISH, load_words, sentences_of_errors
from viz_core.runtime.assets import ASSETS

_FORMULA = re.compile(r"\$\$(.+?)\$\$|\$(.+?)\$", re.DOTALL)
_FUNCTION = re.compile(r"(<mi>(?:sin|cos)</mi>)")  # browsers put no space around them
_TO_MEASURE = re.compile(r"\s*\[[^\]]*\]\(#[^)]*\)$", re.MULTILINE)
"""The link at the end of a takeaway, to the measure in the app that shows it."""
_ICONS = {"check": "✓", "close": "✗"}
_ICON, _COLOUR = re.compile(r":material/(\w+):"), re.compile(r":(blue|gray|orange|green|red)\[([^\[\]]*)\]")
"""Signs and colours of the app's texts."""
_TO_PARTS = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(#part-[^)]*\)")


def sentence_of_error(english: str, language: str) -> str:
    """An error's sentence in a language; numbers are written by the browser."""
    sentences = {} if language == ENGLISH else sentences_of_errors(language)
    return re.sub(r":[^{}]+\}", "}", sentences.get(english, english))


def html_of(text: str) -> str:
    """Markdown with formulas as HTML and MathML. Links to parts of a figure stay as words."""
    formulas: list[str] = []

    def keep(found: re.Match[str]) -> str:
        block, inline = found.groups()
        latex = (block or inline).replace("{aligned}", "{align*}")  # as the converter knows it
        mathml = convert(latex, display="block" if block else "inline")
        formulas.append(_FUNCTION.sub(r'<mspace width="0.14em"/>\1<mspace width="0.14em"/>', mathml))
        return f"FORMULA{len(formulas) - 1}END"

    signs = _ICON.sub(lambda found: _ICONS.get(found[1], ""), _FORMULA.sub(keep, text))
    plain = _TO_PARTS.sub(r"\1", _COLOUR.sub(r'<span class="\1">\2</span>', signs))
    made = markdown.markdown(plain, extensions=["tables"])
    made = re.sub(r"FORMULA(\d+)END", lambda found: formulas[int(found[1])], made)
    return re.sub('<p>(?=<math[^>]* display="block")', '<p class="formula" tabindex="0">', made)  # wider than a phone


def plain_text(text: str) -> str:
    """Markdown without its emphasis, for text that a script fills in."""
    return text.replace("**", "").replace("`", "")


TEMPLATES = Path(__file__).parent / "templates"

_CARD = (
    '<li><img src="../gallery/{picture}.png" alt="" loading="lazy"><a href="{path}"><b>{title}</b></a>'
    '<p>{teaser}</p><p class="note">{size}</p></li>'
)
COMPONENT = "component"
"""The script of pages that show a component of the app with recorded data."""
RECORDED = "recorded"
"""The script of pages that show recorded figures of a chapter."""
_PICTURES = {"walk": "queries-keys-values", "writer": "model-lab", "index": "transformer", "review": "learning"}
"""Pictures of the app's gallery, of pages that have another name there."""
PAGES = {"model-lab": "writer", "transformer": "transformer", "vision-transformer": "vision-transformer"}
"""Chapters that this site computes in the browser, and where; the others are recorded."""
CARDS = {path.parent.name: path for path in (*ASSETS.glob("checkpoints/*/card.md"), *ASSETS.glob("hub/*/README.md"))}
"""Cards of the models that ship: scores, data and their licences."""
MODELS = {
    "transformer": ("transformer-en-fr",),
    "walk": ("transformer-en-fr",),
    "writer": ("writer-en",),
    "vision-transformer": ("vit-fashion-mnist", "vit-cifar10"),
}
"""The models that a page runs, whose card, data and licence it names."""


@dataclass(frozen=True)
class Words:
    """The words of one language that the pages share."""

    language: str

    def of(self, file: str, name: str) -> str:
        """A section of assets/text/LANGUAGE/FILE.md."""
        return load_words(file, self.language)(name)

    def label(self, file: str, control: str) -> str:
        """The label of a control."""
        return load_words(file, self.language).label(control)

    def title(self, file: str) -> str:
        """The title of a file's chapter."""
        return load_words(file, self.language).title


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


def card_list(words: Words, cards: Sequence[Card]) -> str:
    """HTML of the table of contents: each page with the size of what it loads."""
    made = [
        _CARD.format(
            path=f"{card.name}.html",
            picture=picture_of(card.name),
            title=html.escape(card.title),
            teaser=html.escape(card.teaser),
            size=words.of("site", "size").replace("{size}", str(round(card.size / 1e6))) if card.size > 1e6 else "",
        )
        for card in cards
    ]
    return f'<ul class="cards">{"".join(made)}</ul>'


def picture_of(page: str) -> str:
    """Name of the gallery's picture of a page."""
    return _PICTURES.get(page, page)


def card_page(model: str) -> str:
    """A model's card as a page."""
    text = frontmatter.loads(CARDS[model].read_text(encoding="utf-8")).content
    return fill_template("card", title=html.escape(model), body=markdown.markdown(text, extensions=["tables"]))


def credits_of(words: Words, page: str) -> str:
    """HTML: the model card, data and licence of each model of a page, of all on the index; then source and citation."""
    models = MODELS.get(
        page, dict.fromkeys(each for some in MODELS.values() for each in some) if page == "index" else ()
    )
    source = os.environ.get("ATLAS_REPOSITORY", "").rstrip("/")
    lines = [words.of("site", f"credit.{model}").replace("{card}", f"../cards/{model}.html") for model in models]
    lines.append(words.of("site", "credit"))
    if source:
        lines.append(f"[{words.of('site', 'source')}]({source})")
    return "".join(html_of(line) for line in lines)


def root_page() -> str:
    """The page at the root, which leads to the reader's language."""
    title = html.escape(Words("en").title("site"))
    return fill_template("root", title=title, languages=" ".join(LANGUAGES), links=_language_links("", "", "index"))


def script_words(words: Words, *names: tuple[str, str] | tuple[str, str, str]) -> dict[str, str]:
    """Words that a script fills in: (file, section), or (file, section, name in the script)."""
    return {name[-1]: plain_text(words.of(name[0], name[1])) for name in names}


def whole_page(
    words: Words,
    name: str,
    title: str,
    question: str,
    body: str,
    data: Mapping[str, Any],
    *,
    chapter: str = "",
    definition: str = "",
    app: str = "",
    here: str = "",
) -> str:
    """A page with its head, its languages, its data and its script.

    Args:
        name: of its script, and of its file unless `here` is given, without ending.
        body: its HTML between the question, with the definition, and what to remember.
        data: what the script reads.
        chapter: of the app, to which the page links, and whose formula and takeaways it shows beside a `definition`.
        definition: HTML.
        app: address of the app, or "".
    """
    here = here or name
    page = here if name in (COMPONENT, RECORDED) else name
    about = link = takeaways = ""
    if chapter and app:
        address = html.escape(f"{app.rstrip('/')}/{chapter}", quote=True)
        link = f'<a href="{address}" data-part="in-app">{words.of("site", "in-app")}</a>'
    if chapter:
        about = (
            f'<p class="note about">{words.of("site", "recorded-figures" if name == RECORDED else "about")} {link}</p>'
        )
    if definition:
        formula = f"<div>{html_of(words.of(chapter, 'formula'))}</div>"
        definition = f'<div class="definition">{definition}{formula}</div>'
        own = load_words(chapter, words.language)
        remembered = html_of(_TO_MEASURE.sub("", own("takeaways"))) if own.has("takeaways") else ""
        takeaways = f'<div class="takeaways">{remembered}</div>'
    atlas = words.title("common")
    return fill_template(
        "page",
        language=words.language,
        kind="view" if here.startswith("view") else here,
        title=html.escape(f"{title} · {atlas}" if chapter else title),
        heading=html.escape(title),
        question=html.escape(question, quote=True),
        alternates="\n".join(
            f'<link rel="alternate" hreflang="{each}" href="../{each}/{here}.html">' for each in LANGUAGES
        ),
        atlas=html.escape(atlas),
        og_picture=_og_picture(page),
        credits=credits_of(words, page),
        language_label=words.of("common", "language"),
        languages=_language_links("../", words.language, here),
        definition=definition,
        no_script=words.of("site", "no-script"),
        body=body + takeaways + about,
        data=json.dumps(data, ensure_ascii=False, sort_keys=True).replace("</", "<\\/"),
        script=name,
    )


def _og_picture(page: str) -> str:
    """The picture that other sites show beside a link; they need the whole address, so none without ATLAS_SITE."""
    site = html.escape(os.environ.get("ATLAS_SITE", "").rstrip("/"), quote=True)
    return f'\n<meta property="og:image" content="{site}/gallery/{picture_of(page)}.png">' if site else ""


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
