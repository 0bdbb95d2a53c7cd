"""Essentials of chapters, recorded: the app's own page runs once for each setting of a control, and its figures stay.

The table `[site]` of a chapter.toml says what is recorded: `control`, a key of the page; `values`, as they stand in the
address; and `start`, the one that the page opens on. The app runs here as a whole, from its entry point, so that words,
figures and numbers are those of the app.
"""

from __future__ import annotations

import base64
import gzip
import html
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from streamlit.testing.v1 import AppTest

from static_site.chapter_pages import ROOT, chapter_page, labelled_range, note
from static_site.files import SiteFiles
from static_site.pages import RECORDED, Words, html_of, markup_of, script_words
from ui.streamlit_internals.front_end import follow_link

COMPONENTS = frozenset({"attention_view", "chart", "heatmap", "places"})
"""Components of the app that draw from recorded data alone."""
_CARD, _EXERCISE = re.compile(r"-card-[\w-]+$"), re.compile(r"-exercise-([\w-]+)$")
_RADIX = {"pt-BR": ","}  # before the decimals; elsewhere a point


@dataclass
class Recording:
    """What a page draws at each setting of a control.

    Attributes:
        data: bytes of components, each once, in base64.
        frames: a tree of parts for each setting: {"html"}, {"component", "data", "inPage"}, {"row": columns}, or
            {"fold", "parts", "open"}.
        label, shown: of the control, and its value in each frame.
        exercise: name of the question that the page asks first, "" where it asks none.
    """

    data: list[str] = field(default_factory=list)
    frames: list[list[dict[str, Any]]] = field(default_factory=list)
    label: str = ""
    shown: list[str] = field(default_factory=list)
    exercise: str = ""

    def packed(self) -> bytes:
        """The frames and their data as JSON, compressed."""
        content = json.dumps({"data": self.data, "frames": self.frames}, ensure_ascii=False)
        return gzip.compress(content.encode(), 9, mtime=0)

    def parts(self, block: Any) -> Iterator[dict[str, Any]]:
        """The parts that a block of the page draws; controls are left out."""
        for child in block.children.values():
            if hasattr(child, "children"):
                yield from self._block(child)
            elif child.type in ("markdown", "caption") and child.value:
                text = child.value
                yield {"html": note(text) if child.type == "caption" else html_of(text)}
            elif child.type == "bidi_component" and child.proto.component_name in COMPONENTS:
                yield self._component(child.proto)

    def _block(self, block: Any) -> Iterator[dict[str, Any]]:
        if block.type == "popover":
            return
        if block.type == "expander":
            if parts := list(self.parts(block)):
                yield {"fold": html_of(block.label), "parts": parts, "open": block.proto.expanded}
            return
        columns = [child for child in block.children.values() if getattr(child, "type", "") == "column"]
        if columns:
            yield {"row": [list(self.parts(column)) for column in columns]}
        else:
            yield from self.parts(block)

    def _component(self, proto: Any) -> dict[str, Any]:
        data = base64.b64encode(proto.bytes).decode()
        if data not in self.data:
            self.data.append(data)
        place = self.data.index(data)
        return {"component": proto.component_name, "data": place, "inPage": not proto.isolate_styles}


def record_chapter(name: str, site: Mapping[str, Any], language: str) -> Recording:
    """Run a chapter of the app at each value of its control.

    Raises:
        ValueError: if a page fails, draws no figure, or refuses a value.
    """
    recording, key = Recording(), site["control"]
    for value in site["values"]:
        app = open_chapter(name, {key: value, "lang": language})
        blocks = {block.proto.id: block for block in blocks_of(app.main)}
        cards = [block for place, block in blocks.items() if _CARD.search(place)]
        recording.frames.append([part for card in cards for part in recording.parts(card)])
        exercises = [found[1] for place in blocks if (found := _EXERCISE.search(place))]
        control = next(each for each in widgets_of(app.main) if each.key == key)
        recording.exercise, recording.label = next(iter(exercises), ""), control.label
        recording.shown.append(value_of(control, language))
    if len(recording.shown) > len(set(recording.shown)) or not recording.data:
        raise ValueError(f"{name}: expected a figure for each value of {key}, got {recording.shown}")
    return recording


def open_chapter(name: str, parameters: Mapping[str, str]) -> AppTest:
    """Run the app with this chapter at an address.

    Raises:
        ValueError: if the page fails.
    """
    app = AppTest.from_file(str(ROOT / "ui" / "app" / "main.py"), default_timeout=300)
    for key, value in parameters.items():
        app.query_params[key] = value
    follow_link(app, name).run()
    if app.exception:
        raise ValueError(f"{name}: {app.exception[0].message}")
    return app


def blocks_of(block: Any) -> Iterator[Any]:
    """All blocks within a block, with names of their own, in reading order."""
    for child in block.children.values():
        if hasattr(child, "children"):
            if getattr(child.proto, "id", ""):
                yield child
            yield from blocks_of(child)


def widgets_of(block: Any) -> Iterator[Any]:
    """All controls within a block."""
    for child in block.children.values():
        if hasattr(child, "children"):
            yield from widgets_of(child)
        elif getattr(child, "key", None):
            yield child


def value_of(control: Any, language: str) -> str:
    """What a control shows, as plain text: the label of its choice, or its number as the language writes it."""
    options = list(getattr(control, "options", ()))
    if not options:
        return str(control.value).replace("-", "−").replace(".", _RADIX.get(language, "."))
    value = control.value[0] if isinstance(control.value, list) else control.value
    places = getattr(control, "indices", None) or [getattr(control, "index", None)]
    shown = options[places[0]] if places[0] is not None else value
    return str(getattr(shown, "content", shown)).replace("\\", "")


def recorded_page(files: SiteFiles, words: Words, name: str, site: Mapping[str, Any], app: str) -> str:
    """Record a chapter, add its file, and return its page."""
    recording = record_chapter(name, site, words.language)
    file = files.add(f"{words.language}/recorded/{name}.json.gz", recording.packed())
    prefix, _, control = site["control"].partition("-")
    used = dict.fromkeys(component for frame in recording.frames for component in components_in(frame))
    slider = labelled_range(recording.label, control, 0, len(recording.shown) - 1, site["values"].index(site["start"]))
    body = '<div class="recorded" data-part="figure"></div>' + prediction(words, name, recording.exercise)
    body += "".join(markup_of(component, f"markup-{component}") for component in used)
    data = {
        "words": script_words(words, ("site", "figures-failed")),
        "prefix": prefix,
        "control": control,
        "file": file,
    }
    data |= {"shown": recording.shown, "values": site["values"]}
    return chapter_page(words, name, slider, body, data, app, script=RECORDED)


def components_in(parts: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Names of the components that these parts show."""
    for part in parts:
        if "component" in part:
            yield part["component"]
        for inner in (*part.get("row", ()), part.get("parts", ())):
            yield from components_in(inner)


def prediction(words: Words, name: str, exercise: str) -> str:
    """HTML: a question of the chapter; its answer and the reason are behind a fold."""
    if not exercise:
        return ""
    text = words.of(name, f"exercise.{exercise}")
    question = text.split("\n- [")[0].strip()
    answer = re.findall(r"^- \[x\] (.+)$", text, re.MULTILINE)
    reason = re.findall(r"^> ?(.*)$", text, re.MULTILINE)
    reveal = html.escape(words.of("common", "sketch.reveal"))
    fold = f"<details><summary>{reveal}</summary>{html_of(' '.join((*answer, *reason)))}</details>"
    return f'<div class="prediction">{html_of(question)}{fold}</div>'
