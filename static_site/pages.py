"""The HTML of the pages, in one language each, and their words: those of the app, from assets/text."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import frontmatter
import markdown
import numpy as np
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from latex2mathml.converter import convert
from markupsafe import Markup

from static_site.files import LANGUAGES
from ui.text.words import ENGLISH, load_words, sentences_of_errors
from ui.text.words import Words as ChapterWords
from viz_core.maps import MEASURES
from viz_core.maps.fingerprints import CLEAR, RESTING
from viz_core.maps.word_maps import SEPARATORS
from viz_core.runtime.assets import ASSETS
from viz_core.view.components import WORD_NAMES, group_labels, view_words
from viz_core.view.state import ALLOWED, DisplayOptions

_FORMULA = re.compile(r"\$\$(.+?)\$\$|\$(.+?)\$", re.DOTALL)
_FUNCTION = re.compile(r"(<mi>(?:sin|cos)</mi>)")  # browsers put no space around them
_TO_MEASURE = re.compile(r"\s*\[[^\]]*\]\(#[^)]*\)$", re.MULTILINE)
"""The link at the end of a takeaway, to the measure in the app that shows it."""
_ICONS = {"check": "✓", "close": "✗"}
_ICON, _COLOUR = re.compile(r":material/(\w+):"), re.compile(r":(blue|gray|orange|green|red|violet)\[([^\[\]]*)\]")
"""Signs and colours of the app's texts."""
_TO_PARTS = re.compile(r"\[((?:[^\[\]]|\[[^\]]*\])*)\]\(#part-[^)]*\)")


def sentence_of_error(english: str, language: str) -> str:
    """An error's sentence in a language; numbers are written by the browser."""
    sentences = {} if language == ENGLISH else sentences_of_errors(language)
    return re.sub(r":[^{}]+\}", "}", sentences.get(english, english))


def html_of(text: str) -> Markup:
    """Markdown with formulas as HTML and MathML. Links to parts of a figure stay as words."""
    formulas: list[str] = []

    def keep(found: re.Match[str]) -> str:
        block, inline = found.groups()
        latex = (block or inline).replace("{aligned}", "{align*}")  # as the converter knows it
        mathml = convert(latex, display="block" if block else "inline")
        formulas.append(_FUNCTION.sub(r'<mspace width="0.14em"/>\1<mspace width="0.14em"/>', mathml))
        return f"FORMULA{len(formulas) - 1}END"

    signs = _ICON.sub(lambda found: _ICONS.get(found[1], ""), _FORMULA.sub(keep, text))
    plain = _TO_PARTS.sub(r"\1", _COLOUR.sub(r'<span style="color: var(--st-\1-text-color)">\2</span>', signs))
    made = markdown.markdown(plain, extensions=["tables"])
    made = re.sub(r"FORMULA(\d+)END", lambda found: formulas[int(found[1])], made)
    return Markup(re.sub('<p>(?=<math[^>]* display="block")', '<p class="formula" tabindex="0">', made))  # may scroll


def plain_text(text: str) -> str:
    """Markdown without its emphasis, for text that a script fills in."""
    return text.replace("**", "").replace("`", "")


_TEMPLATES = Environment(
    loader=FileSystemLoader(Path(__file__).parent / "templates"),
    autoescape=True,
    trim_blocks=True,
    lstrip_blocks=True,
    undefined=StrictUndefined,
)
_TEMPLATES.filters["markdown"] = html_of
PICTURES = {"walk": "queries-keys-values", "writer": "model-lab", "index": "transformer", "review": "learning"}
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
    "index": ("transformer-en-fr", "writer-en", "vit-fashion-mnist", "vit-cifar10"),
}
"""The models that a page runs, or leads to, whose card, data and licence it names."""

_STATES = ("loading", "preparing", "ready", "ready-unkept", "failed", "offline-unkept", "unsupported")


@dataclass(frozen=True)
class Words:
    """The words of one language that the pages share, and the address of the app, to which they link, or ""."""

    language: str
    app: str = ""

    def __call__(self, file: str) -> ChapterWords:
        """Those of assets/text/LANGUAGE/FILE.md."""
        return load_words(file, self.language)


class Card(NamedTuple):
    """An entry of the table of contents."""

    name: str  # of the page's file, without .html
    title: str
    teaser: str
    size: int = 0  # what the page loads once, in bytes, beside the small files; 0 for a page without a model


def card_page(model: str) -> str:
    """A model's card as a page."""
    text = frontmatter.loads(CARDS[model].read_text(encoding="utf-8")).content
    return fill_template("card", Words(ENGLISH), file="card", title=model, text=text)


def script_words(words: Words, *names: tuple[str, str] | tuple[str, str, str]) -> dict[str, str]:
    """Words that a script fills in: (file, section), or (file, section, name in the script)."""
    return {name[-1]: plain_text(words(name[0])(name[1])) for name in names}


def whole_page(
    words: Words, script: str, data: Mapping[str, Any], file: str = "", chapter: str = "", **parts: Any
) -> str:
    """A page with its head, its languages, its data and its script.

    Args:
        script: its name, and that of the file unless `file` is given, without ending.
        data: what the script reads.
        chapter: of the app, to which the page links, and whose formula and takeaways it shows beside a definition.
        parts: `title`, `question` and `definition`, those of the chapter unless given; and what templates/page.html
            shows of a page of this kind.
    """
    file = file or script
    page = script if file.startswith("view") else file
    own = words(chapter or "site")
    texts = {name: own(name) if own.has(name) else "" for name in ("question", "definition", "formula", "takeaways")}
    about_maps = next((own(name) for name in ("look.maps", "caption.maps") if own.has(name)), "")
    parts = texts | {"title": own.title, "about_maps": about_maps} | parts
    parts |= {
        "data": Markup(json.dumps(data, ensure_ascii=False, sort_keys=True).replace("</", "<\\/")),
        "site": os.environ.get("ATLAS_SITE", "").rstrip("/"),  # other sites need the whole address of a picture
        "picture": page,
        "takeaways": _TO_MEASURE.sub("", parts["takeaways"]),
        "models": MODELS.get(page, ()),
        "source": os.environ.get("ATLAS_REPOSITORY", "").rstrip("/"),
        "app": words.app.rstrip("/"),
    }
    return fill_template("page", words, script=script, file=file, chapter=chapter, **parts)


def fill_template(name: str, words: Words, **parts: Any) -> str:
    """A template of static_site/templates with its parts, in a language."""
    return _TEMPLATES.get_template(f"{name}.html").render(
        words=words,
        language=words.language,
        languages=LANGUAGES,
        word=lambda file, section, language=words.language: load_words(file, language)(section),
        **parts,
    )


def model_data(
    words: Words,
    chapter: str,
    heads: Mapping[str, tuple[int, ...]],
    problems: Mapping[str, str],
    *names: tuple[str, str] | tuple[str, str, str],
) -> dict[str, Any]:
    """What every model's script reads: words, and how maps are named, measured and shown.

    Args:
        chapter: of the app, with the labels of the groups of maps.
        heads: numbers of layers and of heads in each, by group.
        problems: the sentence of each refused input, in English, by its name in the script.
        names: more words, as `script_words` takes them.
    """
    language = words.language
    filled = script_words(
        words,
        *(("site", name) for name in (*_STATES, "timing", "recorded")),
        *(("transformer", name) for name in ("claim.rows", "claim.cache", "off-with", "off-without")),
        *(("common", name) for name in ("holds", "fails", "badge.off-by", "measured.off-by")),
        *(("attention-view", name) for name in ("head_name", "announcement", "row")),
        *names,
    )
    sentences = {f"problem.{name}": sentence_of_error(text, language) for name, text in problems.items()}
    shown = view_words(language)
    return {
        "words": filled | sentences,
        "labels": group_labels(chapter, language),
        "heads": [f"{group}.{layer}.{head}" for group, shape in heads.items() for layer, head in np.ndindex(shape)],
        "viewWords": {name: shown[name] for name in WORD_NAMES},
        "measures": [
            {"name": each.name, "unit": each.unit, "names": each.names_heads, "target": target and asdict(target)}
            for each in MEASURES.values()
            for target in [each.target]
        ],
        "separators": SEPARATORS.pattern,
        "patterns": {"clear": CLEAR, "resting": RESTING},
        "open": "",  # the head whose pattern is clearest, as in the app
        "display": asdict(DisplayOptions()),
        "allowed": {name: pattern.replace(r"\w", r"\p{L}\p{N}_") for name, pattern in ALLOWED.items()},
    }


def model_page(words: Words, page: dict[str, Any], data: Mapping[str, Any], file: str) -> str:
    """The HTML of a model's page, or of a file that shows its view only, for a frame in another page.

    Args:
        page: `name` of its file and script; `chapter` of the app, whose essentials it shows; `title`; maybe its own
            `definition`; and what templates/model.html shows of a form: labels of a `text` with its `placeholder`, of
            an `upload` and of a `button`; label and options of each of `selects`; label, and least, most, step and
            first value of each of `numbers`; `examples` of a text; and `lang`, the language of the result.
    """
    own = {name: value for name, value in page.items() if name in ("title", "definition")}
    return whole_page(words, page["name"], data, file, page["chapter"], page=page, **own)
