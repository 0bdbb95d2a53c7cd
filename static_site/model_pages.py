"""What pages whose model runs in the browser have in common: their files, their words, their HTML."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from static_site.files import SiteFiles
from static_site.model_files import WeightStore
from static_site.pages import Words, script_words, sentence_of_error, whole_page
from viz_core.maps import MEASURES
from viz_core.maps.fingerprints import CLEAR, RESTING
from viz_core.maps.word_maps import SEPARATORS
from viz_core.trace import Trace
from viz_core.trace.source import Projected
from viz_core.view.components import WORD_NAMES, Sections, frame, view_words
from viz_core.view.state import ALLOWED, DisplayOptions

_STATES = ("loading", "preparing", "ready", "ready-unkept", "failed", "offline-unkept", "unsupported")


FORM: dict[str, Any] = {
    **dict.fromkeys(("text", "placeholder", "upload", "button", "lang"), ""),
    **{"selects": {}, "numbers": {}, "examples": ()},
}
"""What a model's page may have: labels of a text, of a picture and of a button; what stands in the text's field;
label and options of each list; label, and least, most, step and first value of each number; texts that fill in the
field; and the language of the result."""


def add_model(
    files: SiteFiles, name: str, graphs: Mapping[str, bytes], store: WeightStore, **others: str
) -> dict[str, Any]:
    """Add a model's graphs and weights, and other files of its folder by their names without .json.gz."""
    folder = f"models/{name}"
    return {
        "graphs": {each: files.add(f"{folder}/{each}.onnx", graph) for each, graph in graphs.items()},
        "weights": files.add(f"{folder}/weights.gz", bytes(store.content)),
        **{each: files.add(f"{folder}/{each}.json.gz", content) for each, content in others.items()},
    }


def add_recorded(files: SiteFiles, page: str, found: Mapping[str, Any], trace: Trace) -> dict[str, Any]:
    """Add what the model makes of the example of its page, which shows that until the model has arrived.

    Args:
        found: as the script of the model returns it, but for its calls.
        trace: their queries and keys, recorded by the names that graphs give them.
    """
    sections = Sections()

    def place(values: np.ndarray) -> dict[str, Any]:
        return {"shape": values.shape, "offset": sections.add(values)}

    sources = {site: trace[site].source for site in trace.sites}
    outputs = {
        f"{site}.{name}": place(part.float().numpy())
        for site, source in sources.items()
        if isinstance(source, Projected)
        for name, part in (("queries", source.queries), ("keys", source.keys))
    }
    header = {name: place(value) if isinstance(value, np.ndarray) else value for name, value in found.items()}
    return files.add(f"models/recorded/{page}.bin", frame(header | {"outputs": outputs}, sections))


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
        *(("common", name) for name in ("holds", "fails", "badge.off-by", "measured.off-by")),
        *(("attention-view", name) for name in ("head_name", "announcement", "row")),
        *names,
    )
    sentences = {f"problem.{name}": sentence_of_error(text, language) for name, text in problems.items()}
    shown = view_words(language)
    return {
        "words": filled | sentences,
        "viewWords": {name: shown[name] for name in WORD_NAMES},
        "measures": [
            {"name": each.name, "unit": each.unit, "names": each.names_heads, "target": target and asdict(target)}
            for each in MEASURES.values()
            for target in [each.target]
        ],
        "separators": SEPARATORS.pattern,
        "patterns": {"clear": CLEAR, "resting": RESTING},
        "display": asdict(DisplayOptions()),
        "allowed": {name: pattern.replace(r"\w", r"\p{L}\p{N}_") for name, pattern in ALLOWED.items()},
    }


def model_page(words: Words, page: dict[str, Any], data: Mapping[str, Any], file: str) -> str:
    """The HTML of a model's page, or of a file that shows its view only, for a frame in another page.

    Args:
        page: `name` of its file and script; `chapter` of the app, whose essentials it shows; `title`; maybe its own
            `definition`; and what it has of `FORM`.
    """
    own = {name: value for name, value in page.items() if name in ("title", "definition")}
    return whole_page(words, page["name"], data, file, page["chapter"], page=FORM | page, **own)
