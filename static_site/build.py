"""Build the site: models, scripts and pages, in a folder that any web host serves."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from static_site import classifier, translator, writer
from static_site.files import LANGUAGES, WEB, SiteFiles, add_recorded, size_of
from static_site.pages import MODELS as MODELS_OF_PAGES
from static_site.pages import PICTURES, Card, Words, card_page, fill_template, model_page
from static_site.recorded_pages import COMPONENTS as RECORDED_COMPONENTS
from static_site.recorded_pages import component_page, recorded_page
from ui.chapter.contents import chapter_entries
from ui.text.words import ENGLISH
from viz_core.runtime.assets import ASSETS
from viz_core.view.components import COMPONENTS, DARK, LIGHT, read_component

ROOT = Path(__file__).resolve().parents[1]
PLOTLY = ASSETS / "vendor" / "plotly" / "plotly-figures.min.js"
VENDOR = Path(__file__).parent / "vendor"
RUNTIME = VENDOR / "onnxruntime-web" / "ort-wasm-simd-threaded.wasm"
MODELS = (translator, writer, classifier)
"""Modules of pages with a model: each loads it, adds its files, and makes its part of the page and its data."""


def build_site(folder: Path, app: str = "") -> SiteFiles:
    """Write the site to `folder`, which is emptied first. The same sources give the same bytes.

    ValueError if the folder holds anything but a site built before.

    Args:
        app: address of the app, to which pages link where it is given.
    """
    if folder.is_dir() and any(folder.iterdir()) and not (folder / "files.json").is_file():
        raise ValueError(f"{folder} holds other files; expected an empty folder, or a site built before")
    files = SiteFiles(folder)
    _add_scripts(files)
    runtime = {"runtime": files.add(f"vendor/{RUNTIME.relative_to(VENDOR)}.gz", RUNTIME.read_bytes())}
    models = [(part, model := part.load_model(), runtime | part.add_files(files, model)) for part in MODELS]
    for language in LANGUAGES:
        words = Words(language, app)
        cards = []
        for part, model, own in models:
            page, data = part.page(words), part.data(words, model) | {"files": own}
            data["recorded"] = add_recorded(files, page["name"], *part.recorded(words, model))
            view = "view" if part is translator else f"view-{page['name']}"
            for name in (page["name"], view):
                files.add(f"{language}/{name}.html", model_page(words, page, data, name))
            cards.append(Card(page["name"], page["title"], words(page["chapter"])("question"), size_of(own)))
            if part is translator:
                files.add(f"{language}/walk.html", translator.walk_page(files, words, model, data))
                cards.append(Card("walk", words("walk").title, words("walk")("question"), size_of(own)))
        for name, site in {name: entry.site for name, entry in chapter_entries().items() if entry.site}.items():
            files.add(f"{language}/{name}.html", recorded_page(files, words, name, site))
            cards.append(Card(name, words(name).title, words("home")(f"teaser.{name}")))
        files.add(f"{language}/review.html", component_page(words, "review", "review"))
        cards.append(Card("review", words("review").title, words("review")("question")))
        files.add(f"{language}/index.html", component_page(words, "index", "linked_sentences", cards))
        for name in ("index", *(card.name for card in cards)):
            files.add(f"gallery/{name}.png", (ASSETS / "gallery" / f"{PICTURES.get(name, name)}.png").read_bytes())
    for name in MODELS_OF_PAGES["index"]:
        files.add(f"cards/{name}.html", card_page(name))
    for name in ("LICENSE", "CITATION.cff"):
        files.add(f"{name}.txt", (ROOT / name).read_bytes())
    files.add("index.html", fill_template("root", Words(ENGLISH), file="root"))
    if folder.is_dir():
        shutil.rmtree(folder)
    files.write()
    return files


def _add_scripts(files: SiteFiles) -> None:
    for path in sorted(WEB.glob("*.js")):
        if path.name != "service_worker.js":
            files.add(path.name, path.read_bytes())
    components = sorted(RECORDED_COMPONENTS | {"drawing", "linked_sentences", "review", "walk"})
    for part in components:
        component = read_component(part)
        markup = json.dumps(f"<style>{component.style}</style>{component.markup}")
        files.add(f"components/{part}/view.js", f"export default {markup};")
    for part in (*components, "shared"):
        for path in sorted((COMPONENTS / part).glob("*.js")):
            files.add(f"components/{part}/{path.name}", path.read_bytes())
    theme = (
        f":root {{ color-scheme: light dark; {LIGHT}}}\n@media (prefers-color-scheme: dark) {{ :root {{ {DARK}}} }}\n"
    )
    files.add("style.css", theme + (WEB / "style.css").read_text(encoding="utf-8"))
    for path in sorted({*VENDOR.glob("*/*")} - {RUNTIME}):
        files.add(f"vendor/{path.relative_to(VENDOR)}", path.read_bytes())
    files.add("vendor/plotly.js", PLOTLY.read_bytes() + b"globalThis.Plotly = Plotly;")  # it is imported as a module
    files.add("logo.svg", (COMPONENTS / "logo.svg").read_bytes())
    files.add(".nojekyll", "")
