"""Pages of chapters: sinusoids and the relative projection, which a script computes by formulas, and the walk."""

from __future__ import annotations

import html
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from static_site.model_pages import CLAIM_WORDS, common_data, example_buttons, input_part, text_area
from static_site.pages import COMPONENT, Words, html_of, markup_of, pattern_words, read_words, script_words, whole_page
from static_site.translator import PRESETS, PROBLEMS
from viz_core.runtime.assets import ASSETS

ROOT = ASSETS.parent
BASE, WIDTH = 10000, 32
_NUMBER = re.compile(r"(?<!\\omega_)\{(cos_a|sin_a|minus_sin_a|sin_i|cos_i|sine|cosine|start|turn|end)\}")
_PROOF = ("product", "written", "addition", "result")


def sinusoids_page(words: Words, app: str) -> str:
    """The page of the sinusoidal encoding."""
    name = "sinusoidal-encoding"
    figures = (
        f'<div class="figure" data-part="table"></div>{note(words.of(name, "look.table"))}'
        f"<h2>{words.of(name, 'section.curves')}</h2>"
        '<div class="figure" data-part="curves"></div><p class="note" data-part="look-curves"></p>'
        f"{claim_list(words, ('norm', 'wavelength', 'offset'))}{markup_of('heatmap', 'heatmap-markup')}"
    )
    controls = (
        range_control(words, name, "d", 2, 512, WIDTH)
        + range_control(words, name, "n", 1, 2000, 60)
        + range_control(words, name, "base", 1, 20_000, BASE)
        + range_control(words, name, "columns", 0, WIDTH - 4, 6)
    )
    claims = ("norm", "norm-odd", "wavelength", "offset", "offset-odd")
    figure_words = ("position", "dimension", "value", "column")
    filled = script_words(
        words,
        *CLAIM_WORDS,
        *((name, each) for each in ("alt.table", "alt.curves", "look.curves")),
        *((name, f"claim.{each}") for each in claims),
        *((name, f"figure.{each}") for each in figure_words),
        ("attention-view", "row"),
    )
    heatmap = {each: words.of("common", f"heatmap.{each}") for each in ("about", "whole", "hint")}
    data = {"cells": {"table": words.of(name, "cell.table")}, "heatmap": heatmap, "words": filled}
    return chapter_page(words, name, controls, figures, data, app)


def projection_page(words: Words, app: str) -> str:
    """The page of the relative projection, with its proof."""
    name = "relative-projection"
    lines = "".join(_proof_line(words, line) for line in _PROOF)
    figures = (
        f'<div class="figure" role="img" data-part="circle"></div>{note(words.of(name, "look.rotation"))}'
        f"{claim_list(words, ('moves', 'constant'))}<h2>{words.of(name, 'section.proof')}</h2>{lines}"
    )
    controls = (
        range_control(words, name, "offset", -100, 100, 5)
        + range_control(words, name, "position", 0, 200, 3)
        + range_control(words, name, "pair", 0, WIDTH // 2 - 1, 3)
    )
    filled = script_words(
        words, *CLAIM_WORDS, (name, "alt.rotation"), *((name, f"figure.{each}") for each in ("turn", "sine", "cosine"))
    )
    claims = ("moves", "constant", *(f"proof-{line}" for line in _PROOF))
    marked = {f"claim.{each}": inline_html(words.of(name, f"claim.{each}")) for each in claims}
    data = {"width": WIDTH, "base": BASE, "words": filled | marked}
    return chapter_page(words, name, controls, figures, data, app)


def _proof_line(words: Words, line: str) -> str:
    title, symbols, numbers = (
        words.of("relative-projection", f"proof-{line}{part}") for part in ("", ".symbols", ".numbers")
    )
    return (
        f'<section class="line">{html_of(title)}<div class="algebra">'
        f'<div class="formula" tabindex="0">{html_of(symbols)}</div>'
        f'<div class="formula" tabindex="0" data-part="numbers-{line}">{_numbered(numbers)}</div>'
        f'</div><p class="claims"><span data-part="claim-proof-{line}"></span></p></section>'
    )


def chapter_page(
    words: Words, name: str, controls: str, figures: str, data: Mapping[str, Any], app: str, script: str = ""
) -> str:
    """The page of a chapter: question, definition, controls, figures, takeaways.

    Args:
        script: its name, unless it is the chapter's.
    """
    body = f'<form class="controls" data-part="form" autocomplete="off">{controls}</form>{figures}'
    prefix = "".join(part[0] for part in name.split("-"))  # of the app's query parameters
    question, definition = words.of(name, "question"), html_of(words.of(name, "definition"))
    data = {"prefix": prefix, **data}
    title = words.title(name)
    return whole_page(
        words, script or name, title, question, body, data, chapter=name, definition=definition, app=app, here=name
    )


def range_control(words: Words, chapter: str, name: str, low: int, high: int, value: int) -> str:
    """A slider named and labelled as the app's control."""
    return labelled_range(words.label(chapter, name), name, low, high, value)


def labelled_range(label: str, name: str, low: int, high: int, value: int) -> str:
    """A slider with its label and its value."""
    shown = f'<span><label for="{name}">{html.escape(label)}</label> <output for="{name}"></output></span>'
    ends = f'min="{low}" max="{high}" step="1" value="{value}"'
    return f'<div class="range">{shown}<input type="range" id="{name}" name="{name}" {ends}></div>'


def claim_list(words: Words, names: Sequence[str]) -> str:
    """The places of the badges of claims, under their heading."""
    places = "".join(f'<span data-part="claim-{name}"></span>' for name in names)
    return f'<div data-part="claims"><h2>{words.of("common", "claims")}</h2><p class="claims">{places}</p></div>'


def note(text: str) -> str:
    """A line under a figure."""
    return f'<div class="note">{html_of(text)}</div>'


def inline_html(text: str) -> str:
    """A line of Markdown as HTML, without the paragraph around it."""
    return html_of(text).removeprefix("<p>").removesuffix("</p>")


def _numbered(text: str) -> str:
    """A formula as MathML in which a script writes the numbers that the text names in braces."""
    made = html_of(_NUMBER.sub(r"\\text{@\1@}", text))
    return re.sub(r"<mtext>@([\w ]+?)@</mtext>", r'<mn data-number="\1"></mn>', made)


def recorded_chapters() -> dict[str, Mapping[str, Any]]:
    """Each chapter that is recorded, by the name in its address: the table `[site]` of its chapter.toml."""
    tables = {path.parent.name: tomllib.loads(path.read_text("utf-8")) for path in ROOT.glob("pages/*/chapter.toml")}
    ordered = sorted(tables.items(), key=lambda each: each[1].get("order", 0))
    return {name.replace("_", "-"): table["site"] for name, table in ordered if "site" in table}


NAME = "walk"
EXAMPLE = "preset.cat"
PAGES = {"model-lab": "writer"} | {
    name: name for name in ("transformer", "vision-transformer", "sinusoidal-encoding", "relative-projection")
}
"""Chapters that this site computes in the browser, and where."""
LINKS = {
    "embedding": "sinusoidal-encoding",
    "positions": "sinusoidal-encoding",
    "residual": "transformer",
    "feed-forward": "transformer",
}
"""Stages that a page of this site explains."""
_EDIT = ("view.hide-key", "view.show-key")
"""Words for what the graphs cannot do; without them the component does not offer it."""


def walk_page(words: Words, translator: dict[str, Any], app: str) -> str:
    """The page of the walk.

    Args:
        translator: data of the translator's page, whose model this page runs.
    """
    _, sections = read_words(NAME, words.language)
    view = {name: text for name, text in sections.items() if name.startswith("view.") and name not in _EDIT}
    data = common_data(words, PROBLEMS) | {
        "walkWords": {name.removeprefix("view."): text for name, text in view.items()} | pattern_words(words),
        "links": {stage: [f"{name}.html", words.title(name)] for stage, name in LINKS.items()},
        "example": words.of("translation", EXAMPLE),
        **{name: translator[name] for name in ("files", "sizes", "heads")},
    }
    button = f'<button type="submit">{words.of("translation", "translate")}</button>'
    controls = text_area(words.label(NAME, "text"), words.of(NAME, "placeholder")) + button
    body = (
        input_part(words, controls, example_buttons(words, [words.of("translation", name) for name in PRESETS]))
        + f'<div class="walk-host" data-part="walk"></div><p class="note">{html.escape(words.of(NAME, "hint"))}</p>'
        + markup_of(NAME, "markup")
    )
    return whole_page(words, NAME, words.title(NAME), words.of(NAME, "question"), body, data, chapter=NAME, app=app)


def review_page(words: Words, app: str) -> str:
    """The questions on every chapter; answers stay in the browser, as those of the app do."""
    front, sections = read_words("review", words.language)
    names = dict.fromkeys(name[:-2] for name in sections if re.search(r"\.[12]$", name))
    pages = {name: name for name in recorded_chapters()} | PAGES
    chapters = [
        {
            "name": name,
            "title": words.title(name),
            "href": f"{pages[name]}.html" if name in pages else f"{app.rstrip('/')}/{name}" if app else None,
            "questions": [_review_question(f"{name}.{number}", sections[f"{name}.{number}"]) for number in (1, 2)],
        }
        for name in names
    ]
    view = {name.removeprefix("view."): text for name, text in sections.items() if name.startswith("view.")}
    shown = {"mode": "overview", "language": words.language, "words": view, "chapters": chapters}
    body = f'<div data-part="component"></div>{markup_of("review", "markup")}'
    data = {"words": {}, "component": "review", "shown": shown}
    return whole_page(words, COMPONENT, str(front["title"]), sections["question"], body, data, here="review")


def _review_question(name: str, text: str) -> dict[str, Any]:
    """A question, the bold idea that it begins with, and its answers with the replies to those that are wrong."""
    question, *answers = re.split(r"\n- \[", text)
    _, idea, asked = question.split("**", 2)
    parts = [re.split(r"\n\s*> ", each, maxsplit=1) for each in answers]
    made = [
        {"right": line[0] == "x", "text": line[2:].strip(), "reply": " ".join(reply).strip()} for line, *reply in parts
    ]
    return {"id": name, "idea": idea, "text": asked.strip(), "answers": made}
