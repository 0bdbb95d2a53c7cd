"""Essentials of chapters, recorded: the app's own page runs once for each setting of a control, and its figures stay.

Tables `[[site]]` of a chapter.toml say what is recorded: `control`, a key of the page; `values`, as they stand in the
address; `start`, the one that the page opens on; and `open`, names of sections that are open. Several controls are
recorded in every combination. The app runs here as a whole, from its entry point, so that words, figures and numbers
are those of the app.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from streamlit.testing.v1 import AppTest

from static_site.files import SiteFiles
from static_site.pages import PAGES, Card, Words, html_of, script_words, whole_page
from ui.chapter.exercises import with_source
from ui.streamlit_internals.front_end import follow_link
from ui.widgets.predictions import read_prediction
from viz_core.runtime.assets import ASSETS

ROOT = ASSETS.parent
COMPONENTS = frozenset({"attention_view", "chart", "heatmap", "places"})
"""Components of the app that draw from recorded data alone."""
_CARD, _EXERCISE = re.compile(r"-card-[\w-]+$"), re.compile(r"-exercise-([\w-]+)$")
_RADIX = {"pt-BR": ","}  # before the decimals; elsewhere a point


@dataclass
class Recording:
    """What a page draws at each setting of its controls, the last of which changes first."""

    data: list[str] = field(default_factory=list)  # bytes of components, each once, in base64
    # A tree of parts for each setting: {"component", "data", "inPage"}, or an element, {"tag", "className", "open"}
    # where it is no plain div, with "html" or "parts".
    frames: list[list[dict[str, Any]]] = field(default_factory=list)
    labels: list[str] = field(default_factory=list)  # of the controls
    shown: list[list[str]] = field(default_factory=list)  # how each control writes its values
    exercise: str = ""  # name of the question that the page asks first, "" where it asks none

    def parts(self, block: Any) -> Iterator[dict[str, Any]]:
        """The parts that a block of the page draws; controls are left out."""
        for child in block.children.values():
            if hasattr(child, "children"):
                yield from self.parts_of(child)
            elif child.type in ("markdown", "caption") and child.value:
                text = html_of(child.value)
                yield {"html": f'<div class="note">{text}</div>' if child.type == "caption" else text}
            elif child.type == "bidi_component" and child.proto.component_name in COMPONENTS:
                yield self._component(child.proto)

    def parts_of(self, block: Any) -> Iterator[dict[str, Any]]:
        """The parts that a block draws, in a fold or a row where it is one."""
        if block.type == "popover":
            return
        if block.type == "expander":
            if parts := list(self.parts(block)):
                summary = {"tag": "summary", "html": html_of(block.label)}
                yield {"tag": "details", "open": block.proto.expanded, "parts": [summary, {"parts": parts}]}
            return
        columns = [child for child in block.children.values() if getattr(child, "type", "") == "column"]
        if columns:
            yield {"className": "row", "parts": [{"parts": list(self.parts(column))} for column in columns]}
        else:
            yield from self.parts(block)

    def _component(self, proto: Any) -> dict[str, Any]:
        data = base64.b64encode(proto.bytes).decode()
        if data not in self.data:
            self.data.append(data)
        place = self.data.index(data)
        return {"component": proto.component_name, "data": place, "inPage": not proto.isolate_styles}


def record_chapter(name: str, site: Sequence[Mapping[str, Any]], language: str) -> Recording:
    """Run a chapter of the app at each setting of its controls.

    ValueError if a page fails, draws no figure, or refuses a value.
    """
    recording, keys = Recording(), [each["control"] for each in site]
    opened = [f"{keys[0].split('-')[0]}-open-{section}" for each in site for section in each.get("open", ())]
    places: list[dict[str, str]] = [{} for _ in keys]
    for values in product(*(each["values"] for each in site)):
        app = open_chapter(
            name, dict.fromkeys(opened, "true") | dict(zip(keys, values, strict=True)) | {"lang": language}
        )
        nodes: list[Any] = list(app.main)
        inner = [node for node in nodes if getattr(node, "children", None)]
        blocks = {node.proto.id: node for node in inner if getattr(node.proto, "id", "")}
        cards = [block for place, block in blocks.items() if _CARD.search(place) or place.endswith(tuple(opened))]
        recording.frames.append([part for card in cards for part in recording.parts_of(card)])
        exercises = [found[1] for place in blocks if (found := _EXERCISE.search(place))]
        widgets = {node.key: node for node in nodes if getattr(node, "key", None)}
        recording.exercise, recording.labels = next(iter(exercises), ""), [widgets[key].label for key in keys]
        for key, value, written in zip(keys, values, places, strict=True):
            written[value] = value_of(widgets[key], language)
    recording.shown = [list(written.values()) for written in places]
    for key, texts in zip(keys, recording.shown, strict=True):
        if len(texts) > len(set(texts)) or not recording.data:
            raise ValueError(f"{name}: expected a figure for each value of {key}, got {texts}")
    return recording


def open_chapter(name: str, parameters: Mapping[str, str]) -> AppTest:
    """Run the app with this chapter at an address. ValueError if the page fails."""
    app = AppTest.from_file(str(ROOT / "ui" / "app" / "main.py"), default_timeout=300)
    for key, value in parameters.items():
        app.query_params[key] = value
    follow_link(app, name).run()
    if app.exception:
        raise ValueError(f"{name}: {app.exception[0].message}")
    return app


def value_of(control: Any, language: str) -> str:
    """What a control shows, as plain text: the label of its choice, or its number as the language writes it."""
    options = list(getattr(control, "options", ()))
    if not options:
        return str(control.value).replace("-", "−").replace(".", _RADIX.get(language, "."))
    value = control.value[0] if isinstance(control.value, list) else control.value
    places = getattr(control, "indices", None) or [getattr(control, "index", None)]
    shown = options[places[0]] if places[0] is not None else value
    return str(getattr(shown, "content", shown)).replace("\\", "")


def recorded_page(files: SiteFiles, words: Words, name: str, site: Sequence[Mapping[str, Any]]) -> str:
    """Record a chapter, add its file, and return its page."""
    made = record_chapter(name, site, words.language)
    content = json.dumps({"data": made.data, "frames": made.frames}, ensure_ascii=False)
    controls, sliders = [], []
    for each, label, shown in zip(site, made.labels, made.shown, strict=True):
        prefix, _, control = each["control"].partition("-")
        controls.append({"name": control, "values": each["values"], "shown": shown})
        sliders.append((control, label, len(shown) - 1, each["values"].index(each["start"])))
    data = {
        "words": script_words(words, ("site", "figures-failed")),
        "prefix": prefix,
        "controls": controls,
        "file": files.add(f"{words.language}/recorded/{name}.json.gz", content),
    }
    answer = prediction(words, name, made.exercise)
    return whole_page(words, "recorded", data, name, name, sliders=sliders, prediction=answer)


def prediction(words: Words, name: str, exercise: str) -> tuple[str, str] | None:
    """Markdown of a question of the chapter, and of its answer with the reason."""
    if not exercise:
        return None
    read = read_prediction(words(name)(f"exercise.{exercise}"))
    (right,) = (answer.text for answer in read.answers if answer.mark == "x")
    return with_source(words("common"), read.question), f"{right} {read.why}"


def component_page(words: Words, name: str, component: str, cards: Sequence[Card] = ()) -> str:
    """A page that shows what the app's page gives one of its components: the index, with its cards, or the review."""
    of_app, own = ("home", "site") if name == "index" else (name, name)
    nodes = open_chapter(of_app, {"lang": words.language}).main
    protos = {node.proto.component_name: node.proto for node in nodes if node.type == "bidi_component"}
    shown = json.loads(protos[component].bytes)
    for chapter in shown.get("chapters", ()):
        chapter["href"] = f"{PAGES.get(chapter['name'], chapter['name'])}.html"
    about = " ".join(words(own)(part) for part in (("about", "offline") if name == "index" else ("question",)))
    data = {"words": {}, "component": component, "shown": shown}
    parts: dict[str, Any] = {"title": words(own).title, "question": about, "component": component, "cards": cards}
    return whole_page(words, "component", data, name, **parts)
