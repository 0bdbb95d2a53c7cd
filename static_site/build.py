"""Build the site: models, scripts and pages, in a folder that any web host serves."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path
from typing import Any

import numpy as np

from static_site import onnxruntime_web
from static_site.chapter_pages import projection_page, sinusoids_page
from static_site.learning_page import add_runs, learning_page
from static_site.onnx_files import empty_graph
from static_site.pages import Words, index_page, root_page, script_words, translator_page
from static_site.site_files import WEB, SiteFiles
from static_site.tokenizers import tokenizer_json
from static_site.translator_graphs import export_translator
from static_site.words import LANGUAGES, sentence_of_error
from viz_core.pretrained import Translator, load
from viz_core.view.components import COMPONENTS, read_component
from viz_core.view.theme import DARK, LIGHT
from viz_core.view.words import WORD_NAMES, group_labels, view_words

TRANSLATOR = "transformer-en-fr"
BEAMS = (1, 4)
EXAMPLE = "preset.letter"
PRESETS = ("preset.go", "preset.calm", "preset.home", "preset.cat", "preset.book", "preset.rain")
PROBLEMS = {
    "too-long": "This text has {count:,} characters; at most {most:,} can be translated.",
    "empty": "There is nothing to translate yet: type an English sentence.",
    "unknown": "The model knows no word or sign in this text. It was trained on English in Latin letters.",
    "too-many": "This text has {count:,} tokens; the model takes at most {most:,}. Shorten it.",
}


def build_site(folder: Path, cache: Path, app: str = "") -> SiteFiles:
    """Write the site to `folder`, which is emptied first. The same sources give the same bytes.

    Args:
        cache: where a downloaded package is kept.
        app: address of the app, to which pages link where it is given.

    Raises:
        ValueError: if the folder holds anything but a site built before.
    """
    if folder.is_dir() and any(folder.iterdir()) and not (folder / "files.json").is_file():
        raise ValueError(f"{folder} holds other files; expected an empty folder, or a site built before")
    files = SiteFiles(folder)
    package = onnxruntime_web.package(cache)
    _add_scripts(files, package)
    runtime = files.add(f"vendor/onnxruntime-web/{onnxruntime_web.PROGRAM}.gz", _zip(package[onnxruntime_web.PROGRAM]))
    translator = load(TRANSLATOR, device="cpu")
    assert isinstance(translator, Translator)
    started = {"runtime": runtime, "empty": files.add("models/empty.onnx", empty_graph())}
    model = _add_translator(files, translator) | started
    markup = _view_markup()
    runs = add_runs(files)
    for language in LANGUAGES:
        words = Words(language)
        data = _translator_data(words, translator, model)
        for name in ("transformer", "view"):
            files.add(f"{language}/{name}.html", translator_page(words, data, markup, app, embedded=name == "view"))
        files.add(f"{language}/sinusoidal-encoding.html", sinusoids_page(words, app))
        files.add(f"{language}/relative-projection.html", projection_page(words, app))
        files.add(f"{language}/learning.html", learning_page(words, runs, app))
        cards = [("transformer", _size(model)), ("sinusoidal-encoding", 0), ("relative-projection", 0)]
        cards.append(("learning", sum(run["file"]["bytes"] for run in runs.values())))
        files.add(f"{language}/index.html", index_page(words, cards))
    files.add("index.html", root_page())
    if folder.is_dir():
        shutil.rmtree(folder)
    files.write()
    return files


def _add_scripts(files: SiteFiles, package: dict[str, bytes]) -> None:
    for path in sorted(WEB.glob("*.js")):
        if path.name != "service_worker.js":
            files.add(path.name, path.read_bytes())
    for part in ("attention_view", "heatmap", "shared"):
        for path in sorted((COMPONENTS / part).glob("*.js")):
            files.add(f"components/{part}/{path.name}", path.read_bytes())
    theme = (
        f":root {{ color-scheme: light dark; {LIGHT}}}\n@media (prefers-color-scheme: dark) {{ :root {{ {DARK}}} }}\n"
    )
    files.add("style.css", theme + (WEB / "style.css").read_text(encoding="utf-8"))
    files.add("logo.svg", (COMPONENTS / "logo.svg").read_bytes())
    files.add(".nojekyll", "")
    vendor = f"vendor/onnxruntime-web/{onnxruntime_web.SCRIPT}"
    files.add(vendor, package[onnxruntime_web.SCRIPT].replace(b"//# sourceMappingURL=", b"// source map: "))
    files.add("vendor/onnxruntime-web/LICENSE", onnxruntime_web.LICENCE)


def _add_translator(files: SiteFiles, translator: Translator) -> dict[str, Any]:
    graphs, store = export_translator(translator.model)
    folder = f"models/{TRANSLATOR}"
    return {
        "graphs": {name: files.add(f"{folder}/{name}.onnx", graph) for name, graph in graphs.items()},
        "weights": files.add(f"{folder}/weights.f16.gz", store.packed()),
        "index": files.add(f"{folder}/weights.json", store.index()),
        "tokenizer": files.add(f"{folder}/tokenizer.json", tokenizer_json(translator.tokenizer)),
    }


def _translator_data(words: Words, translator: Translator, model: dict[str, Any]) -> dict[str, Any]:
    """What the translator's script reads."""
    language = words.language
    blocks = translator.model.encoder.blocks
    layers, heads, size = len(blocks), blocks[0].attention.num_heads, blocks[0].attention.head_dim
    alignments = translator.card.training["alignments"]
    best = np.unravel_index(np.argmin(alignments["written"]), (layers, heads))
    site = ("loading", "preparing", "ready", "ready-unkept", "failed", "unsupported", "timing")
    filled = script_words(
        words,
        *(("site", name) for name in site),
        *(("transformer", f"claim.{name}") for name in ("rows", "future", "cache")),
        *(("transformer", name) for name in ("off-with", "off-without")),
        *(("common", name) for name in ("holds", "fails", "badge.off-by", "measured.off-by")),
        *(("attention-view", name) for name in ("head_name", "announcement", "row")),
        *(("translation", name) for name in ("measured", "incomplete")),
        ("translation", "unknown", "unknown-count"),
    )
    problems = {f"problem.{name}": sentence_of_error(text, language) for name, text in PROBLEMS.items()}
    groups = ("encoder-self", "decoder-self", "cross")
    return {
        "words": filled | problems,
        "viewWords": {name: view_words(language)[name] for name in WORD_NAMES},
        "labels": group_labels("translation", language),
        "files": model,
        "sizes": {"layers": layers, "heads": heads, "size": size},
        "heads": [f"{group}.{layer}.{head}" for group in groups for layer in range(layers) for head in range(heads)],
        "errors": [alignments["written"], alignments["read"]],
        "open": ".".join(["cross", *map(str, best)]),
        "model": translator.card.name,
        "revision": translator.card.revision,
        "example": words.of("translation", EXAMPLE),
        "presets": PRESETS,
        "beams": BEAMS,
    }


def _view_markup() -> str:
    component = read_component("attention_view")
    return f"<style>{component.style}</style>{component.markup}"


def _size(model: dict[str, Any]) -> int:
    single = ("runtime", "empty", "weights", "index", "tokenizer")
    return sum(part["bytes"] for part in (*(model[name] for name in single), *model["graphs"].values()))


def _zip(data: bytes) -> bytes:
    return gzip.compress(data, 9, mtime=0)
