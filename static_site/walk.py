"""The page of the walk, whose model is the translator's."""

from __future__ import annotations

import html
from typing import Any

from static_site.model_pages import common_data, example_buttons, text_area
from static_site.pages import Words, app_link, fill_template, read_words, whole_page
from static_site.translator import PRESETS, PROBLEMS
from viz_core.view.components import read_component

NAME = "walk"
EXAMPLE = "preset.cat"
LINKS = {"residual": "transformer", "feed-forward": "transformer"}
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
        "walkWords": {name.removeprefix("view."): text for name, text in view.items()},
        "links": {stage: [f"{name}.html", words.title(name)] for stage, name in LINKS.items()},
        "example": words.of("translation", EXAMPLE),
        **{name: translator[name] for name in ("files", "sizes", "heads")},
    }
    component = read_component(NAME)
    button = f'<button type="submit">{words.of("translation", "translate")}</button>'
    question = words.of(NAME, "question")
    body = fill_template(
        NAME,
        title=html.escape(words.title(NAME)),
        question=html.escape(question),
        no_script=words.of("site", "no-script"),
        controls=text_area(words.label(NAME, "text"), words.of(NAME, "placeholder")) + button,
        examples=example_buttons(words, [words.of("translation", name) for name in PRESETS]),
        preparing=words.of("site", "preparing"),
        hint=html.escape(words.of(NAME, "hint")),
        about=words.of("site", "about"),
        in_app=app_link(words, app, NAME),
        markup=f"<style>{component.style}</style>{component.markup}",
    )
    return whole_page(words, words.title(NAME), question, body, data, NAME, NAME)
