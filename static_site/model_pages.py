"""What pages whose model runs in the browser have in common: their files, their words, their HTML."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from static_site.files import SiteFiles
from static_site.model_files import WeightStore, compressed
from static_site.pages import Words, html_of, script_words, sentence_of_error, whole_page
from viz_core.maps import MEASURES
from viz_core.maps.fingerprints import CLEAR, RESTING
from viz_core.maps.word_maps import SEPARATORS
from viz_core.trace import Trace
from viz_core.trace.source import Projected
from viz_core.view.components import WORD_NAMES, Sections, frame, view_words
from viz_core.view.state import ALLOWED, DisplayOptions

CLAIM_WORDS = tuple(("common", name) for name in ("holds", "fails", "badge.off-by", "measured.off-by"))
"""Words of a badge, as `script_words` takes them."""

_STATES = ("loading", "preparing", "ready", "ready-unkept", "failed", "offline-unkept", "unsupported")


@dataclass(frozen=True)
class ModelPage:
    """The parts of a page that its model decides.

    Attributes:
        name: of its file and its script, without ending.
        chapter: of the app, whose essentials it shows and to which it links.
        controls, examples, result: HTML.
        look: what to look for in the maps.
        claims: names of the badges.
        definition: HTML, of the chapter unless given.
        lang: attribute of the result's language.
    """

    name: str
    chapter: str
    title: str
    controls: str
    examples: str
    result: str
    look: str
    claims: Sequence[str]
    definition: str = ""
    lang: str = ""


def add_model(
    files: SiteFiles, name: str, graphs: Mapping[str, bytes], store: WeightStore, **others: str
) -> dict[str, Any]:
    """Add a model's graphs and weights, and other files of its folder by their names without .json.gz."""
    folder = f"models/{name}"
    weights, index = store.packed()
    return {
        "graphs": {each: files.add(f"{folder}/{each}.onnx", graph) for each, graph in graphs.items()},
        "weights": files.add(f"{folder}/weights.gz", weights),
        "index": files.add(f"{folder}/weights.json", index),
        **{each: files.add(f"{folder}/{each}.json.gz", compressed(content)) for each, content in others.items()},
    }


def add_recorded(files: SiteFiles, page: str, found: Mapping[str, Any], trace: Trace) -> dict[str, Any]:
    """Add what the model makes of the example of its page, which shows that until the model has arrived.

    Args:
        found: as the script of the model returns it, but for its calls.
        trace: their queries and keys.
    """
    sections = Sections()
    calls: dict[str, list[dict[str, Any]]] = {}

    def place(values: np.ndarray) -> dict[str, Any]:
        return {"shape": values.shape, "offset": sections.add(values)}

    for site in trace.sites:
        stack, _, kind = site.split(".")
        source = trace[site].source
        assert isinstance(source, Projected)
        parts = {"queries": source.queries, "keys": source.keys}
        group = "cross" if kind == "cross" else f"{stack}-self"
        calls.setdefault(group, []).append({name: place(part[0].float().numpy()) for name, part in parts.items()})
    header = {name: place(value) if isinstance(value, np.ndarray) else value for name, value in found.items()}
    return files.add(f"models/recorded/{page}.bin", frame(header | {"calls": calls}, sections))


def size_of(files: Mapping[str, Any]) -> int:
    """Bytes of all files of models."""
    return files["bytes"] if "bytes" in files else sum(map(size_of, files.values()))


def common_data(
    words: Words, problems: Mapping[str, str], *names: tuple[str, str] | tuple[str, str, str]
) -> dict[str, Any]:
    """The words that every model's script reads, with more of them.

    Args:
        problems: the sentence of each refused input, in English, by its name in the script.
        names: more words, as `script_words` takes them.
    """
    language = words.language
    filled = script_words(
        words,
        *(("site", name) for name in (*_STATES, "timing", "recorded")),
        *(("transformer", name) for name in ("claim.rows", "claim.cache", "off-with", "off-without")),
        *CLAIM_WORDS,
        *(("attention-view", name) for name in ("head_name", "announcement", "row")),
        *names,
    )
    sentences = {f"problem.{name}": sentence_of_error(text, language) for name, text in problems.items()}
    shown = view_words(language)
    return {
        "words": filled | sentences,
        "viewWords": {name: shown[name] for name in WORD_NAMES},
        "measures": [
            {
                "name": each.name,
                "unit": each.unit,
                "names": each.names_heads,
                "target": each.target and asdict(each.target),
            }
            for each in MEASURES.values()
        ],
        "separators": SEPARATORS.pattern,
        "patterns": {"clear": CLEAR, "resting": RESTING},
        "display": asdict(DisplayOptions()),
        "allowed": {name: pattern.replace(r"\w", r"\p{L}\p{N}_") for name, pattern in ALLOWED.items()},
    }


def model_page(words: Words, page: ModelPage, data: Mapping[str, Any], app: str, view: str = "") -> str:
    """The HTML of a model's page.

    Args:
        data: what its script reads.
        app: address of the app, or "".
        view: name of the file where it shows one view only, for a frame in another page.
    """
    all_on = f'<button type="button" data-part="all-on" hidden>{words.of("site", "all-on")}</button>'
    result = (
        '<section class="result" aria-live="polite"><p class="note" data-part="whole-caption" hidden></p>'
        f'<p{page.lang} class="translation whole" data-part="whole" hidden></p>'
        f'<p class="note" data-part="caption" hidden></p>{page.result}'
        f'<p class="note"><span data-part="measured"></span> {all_on}</p></section>'
    )
    places = "".join(f'<span data-part="claim-{name}"></span>' for name in page.claims)
    link = f'<a href="{page.name}.html" target="_top" data-part="whole-page">{words.of("site", "whole-page")}</a>'
    body = (
        input_part(words, page.controls, page.examples, result)
        + f'<div class="view-host" data-part="view"></div><p class="note">{html.escape(page.look.replace("`", ""))}</p>'
        + f'<h2>{words.of("common", "claims")}</h2><p class="claims">{places}</p>'
        + f'<p class="note whole-page">{link}</p>'
    )
    definition = page.definition or html_of(words.of(page.chapter, "definition"))
    question = words.of(page.chapter, "question")
    return whole_page(
        words,
        page.name,
        page.title,
        question,
        body,
        data,
        chapter=page.chapter,
        definition=definition,
        app=app,
        here=view,
    )


def input_part(words: Words, controls: str, examples: str, result: str = "") -> str:
    """The form of a model's page, what it says of an input, its result, and the state of the model."""
    preparing = words.of("site", "preparing")
    return (
        f'<form class="controls" data-part="form" autocomplete="off">{controls}</form>{examples}'
        f'<p class="problem" data-part="problem" role="alert" hidden></p>{result}'
        f'<p class="state"><progress data-part="progress" aria-label="{preparing}"></progress> '
        '<span data-part="state" role="status"></span> '
        f'<button type="button" data-part="retry" hidden>{words.of("common", "try-again")}</button></p>'
    )


def example_buttons(words: Words, texts: Sequence[str]) -> str:
    """Buttons that fill in a text."""
    made = (
        f'<button type="button" lang="en" data-example="{text}">{text}</button>' for text in map(html.escape, texts)
    )
    return f'<p class="examples" data-part="examples">{words.of("site", "examples")}: {" ".join(made)}</p>'


def text_area(label: str, placeholder: str = "") -> str:
    """The field of a text."""
    return (
        f'<label class="wide">{html.escape(label)}<textarea name="text" rows="2" maxlength="2000" spellcheck="false" '
        f'placeholder="{html.escape(placeholder)}"></textarea></label>'
    )
