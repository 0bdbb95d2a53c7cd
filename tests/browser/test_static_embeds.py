"""Views of the static site in the frame of another page, the credits of its pages, and downloads that are cut off."""

import html
import json
import re
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from playwright.sync_api import Locator, Page, expect

from benchmarks.serving import ROOT
from benchmarks.static_site import SUB_PATH, wait_until_ready
from viz_core import load, view
from viz_core.trace import intervene, off


def test_a_saved_live_view_shows_itself(alone: Page, site: str, site_folder: Path) -> None:
    with intervene({"decoder.2.cross": off(1)}):
        found = load("transformer-en-fr", device="cpu").translate("the letter", beam=4)
    saved = site_folder / SUB_PATH / "live.html"
    for map_only in (False, True):
        view(found).save(saved, live=".", map_only=map_only)
        alone.goto(f"{site}live.html")
        frame = alone.frame_locator("iframe")
        expect(frame.locator("html")).to_have_attribute("data-off", "cross.2.1")
        expect(frame.locator("[data-part=result]")).to_have_text(found.text)
        assert frame.get_by_role("grid").is_visible() is not map_only
        check_height(alone.locator("iframe"))
    saved.unlink()


FITS = """async (frame) => {
  const { body, documentElement: page } = frame.contentDocument;
  const sizes = () => [body.offsetHeight, page.scrollHeight, page.scrollWidth];
  const excess = () => sizes().map((size, i) => size - (i < 2 ? frame.clientHeight : frame.clientWidth));
  const isOff = () => excess().some((each) => Math.abs(each) > 1);
  for (let i = 0; i < 100 && isOff(); i += 1) await new Promise((done) => setTimeout(done, 50));
  return excess();
}"""


def check_height(frame: Locator) -> None:
    """The frame is as high as what it shows, to a pixel, and nothing in it is cut off or scrolls."""
    assert all(abs(each) <= 1 for each in frame.evaluate(FITS))


def test_the_embeds_of_the_documentation_are_ready(alone: Page, site: str, site_folder: Path) -> None:
    text = (ROOT / "docs" / "site.md").read_text("utf-8")
    embeds = re.findall(r"^\| [^|]+ \| `(\S+)` \|$", text, re.MULTILINE)
    (script,) = re.findall(r"<script>.*?</script>", text, re.DOTALL)
    assert len(embeds) == 6
    host = site_folder / SUB_PATH / "host.html"
    for embed in embeds:
        src = html.escape(embed)
        host.write_text(f'<!doctype html><iframe src="{src}" width="100%" height="900"></iframe>{script}', "utf-8")
        alone.goto(f"{site}host.html")
        frame = alone.frame_locator("iframe")
        frame.locator("html[data-ready]").wait_for(state="attached")
        given = dict(parse_qsl(urlsplit(embed).fragment))
        shown = dict(parse_qsl(urlsplit(frame.locator("html").evaluate("() => location.href")).fragment))
        assert shown == given, "what the view cannot show, or shows anyway"
        assert not frame.get_by_role("alert").is_visible()
        for width in (900, 640, 320):
            alone.set_viewport_size({"width": width + 16, "height": 700})
            check_height(alone.locator("iframe"))
    host.unlink()


def test_every_page_names_card_data_and_licence_of_its_models(site_folder: Path) -> None:
    folder = site_folder / SUB_PATH
    named = {
        "transformer": ("Tatoeba", "CC BY 2.0"), "view": ("Tatoeba", "CC BY 2.0"), "walk": ("Tatoeba", "CC BY 2.0"),
        "writer": ("Tatoeba", "CC BY 2.0"), "vision-transformer": ("Fashion-MNIST", "MIT", "CIFAR-10"),
        "index": ("Tatoeba", "Fashion-MNIST", "CIFAR-10"), "sinusoidal-encoding": (),
    }  # fmt: skip
    for language in ("en", "pt-BR", "zh-TW"):
        for name, expected in named.items():
            text = (folder / language / f"{name}.html").read_text("utf-8")
            (credit,) = re.findall(r'<footer class="credits">(.*?)</footer>', text, re.DOTALL)
            assert [each for each in expected if each not in credit] == [], (language, name)
            links = re.findall(r'href="(\.\./[^"]+)"', credit)
            assert len(links) >= 2 + bool(expected)
            assert all((folder / language / link).resolve().is_file() for link in links)
            assert 'property="og:title"' in text
    pictures = re.findall(r'<img src="\.\./(gallery/[^"]+)"', (folder / "en" / "index.html").read_text("utf-8"))
    pages = [path for path in (folder / "en").glob("*.html") if not path.name.startswith(("index", "view"))]
    assert len(pictures) == len(pages) >= 18
    assert all((folder / each).is_file() for each in pictures)
    assert "Krizhevsky" in (folder / "cards" / "vit-cifar10.html").read_text("utf-8")


def test_a_visit_keeps_small_files_of_its_language_alone(site_folder: Path) -> None:
    """Every small file is kept once for all languages, or with the pages of its own: at most 1.2 MB at a visit."""
    folder = site_folder / SUB_PATH
    worker = (folder / "service_worker.js").read_text("utf-8")
    small = json.loads(re.findall(r"^self.SMALL = (.*?);$", worker, re.MULTILINE | re.DOTALL)[0])
    sizes = {name: file["bytes"] for name, file in json.loads((folder / "files.json").read_text("utf-8")).items()}
    assert small.keys() == {"", "en", "pt-BR", "zh-TW"}
    every = [name for names in small.values() for name in names]
    assert len(every) == len(set(every))
    assert {name for name in sizes if name.endswith((".html", ".js", ".css", ".mjs", ".svg"))} - {*every} == {PLOTLY}
    for language, names in small.items():
        assert all(name.startswith(f"{language}/") for name in names if language)
        assert sum(sizes[name] for name in {*small[""], *names}) < 1.2e6


PLOTLY = "vendor/plotly.js"
STEPS = ("*.wasm.gz", "weights.gz", "*.onnx", "tokenizer.json.gz")
FORGET = "async () => { for (const name of await caches.keys()) await caches.delete(name); }"


@pytest.mark.parametrize("name", ["transformer", "walk", "writer", "vision-transformer"])
def test_a_failed_model_download_is_reported_and_retried(newcomer: Page, site: str, name: str) -> None:
    """Whatever file of the model is cut off."""
    newcomer.add_init_script("delete Navigator.prototype.serviceWorker")  # whose requests no route sees
    steps = [f"**/{step}?*" for step in STEPS if name != "vision-transformer" or "tokenizer" not in step]
    status = newcomer.get_by_role("status")
    for step in steps:
        newcomer.route(step, lambda route: route.abort())
        newcomer.goto(f"{site}en/{name}.html")
        expect(status).to_contain_text("could not be loaded. Check your connection, then try again")
        expect(newcomer.locator(".view-host, [data-part=walk], .claims").first).to_be_hidden()
        newcomer.unroute(step)
        if step != steps[-1]:
            newcomer.evaluate(FORGET)
            newcomer.goto("about:blank")
    newcomer.get_by_role("button", name="Try again").click()
    wait_until_ready(newcomer)
    expect(status).to_contain_text("ready")
    expect(newcomer.get_by_role("button", name="Try again")).to_be_hidden()
    expect(newcomer.locator(".view-host, [data-part=walk]").first).to_be_visible()
