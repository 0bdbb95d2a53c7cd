"""The static site: recorded chapters follow their sliders, the app links to its pages, and others embed its views."""

import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from benchmarks.serving import ROOT, running
from benchmarks.static_site import APP, SUB_PATH, wait_until_ready
from tests.browser.accessibility import check_everyone_can_use_it, check_it_fits, keep_offline
from tests.shared_server import recorded_in
from ui.chapter.contents import all_chapters, chapter_entries
from ui.text.words import load_words
from ui.widgets.sidebar import static_pages
from viz_core import load, view
from viz_core.lessons.relative_projection import proof_lines
from viz_core.trace import intervene, off

LANGUAGES = ("en", "pt-BR", "zh-TW")


def test_the_table_of_contents_leads_to_every_page(alone: Page, site: str) -> None:
    listed = [path for path in json.loads(alone.goto(f"{site}files.json").text()) if path.endswith(".html")]
    for language in LANGUAGES:
        names = {Path(path).name for path in listed if path.startswith(f"{language}/")}
        pages = {name for name in names if not name.startswith(("index", "view"))}
        alone.goto(f"{site}{language}/")
        links = alone.locator(".cards a")
        assert {link.get_attribute("href") for link in links.all()} == pages
        links.first.press("Enter")
        alone.get_by_role("banner").get_by_role("link").first.press("Enter")
        expect(links).to_have_count(len(pages))


def test_a_reader_moves_the_sliders_by_keys_and_follows_the_link_offline(newcomer: Page, site: str) -> None:
    newcomer.goto(site)
    newcomer.get_by_role("link", name="Sinusoidal encoding").click()
    stage = newcomer.locator(".heatmap .stage")
    expect(stage).to_have_attribute("data-columns", "32")
    newcomer.get_by_label("Dimensions d").press("ArrowRight")
    expect(stage).to_have_attribute("data-columns", "33")
    assert newcomer.url.endswith("#d=2")
    newcomer.get_by_label("Base").press("Home")
    assert newcomer.url.endswith("#d=2&base=0")
    link = newcomer.get_by_role("link", name="Open in the app")
    expect(link).to_have_attribute("href", f"{APP}sinusoidal-encoding?se-d=33&se-base=100")
    newcomer.get_by_text("checks hold").click()
    expect(newcomer.get_by_text("squared length 16 + sin² of its last angle")).to_be_visible()
    newcomer.goto(f"{site}pt-BR/relative-projection.html")
    expect(newcomer.locator("[data-part=figure]")).to_have_attribute("data-frame", "13")
    keep_offline(newcomer)
    newcomer.context.set_offline(True)
    newcomer.goto(f"{site}pt-BR/relative-projection.html#offset=0&pair=9")  # as far as the slider goes
    expect(newcomer.locator("[data-part=figure]")).to_have_attribute("data-frame", "3")
    line = next(each for each in proof_lines(-20, 3, 15, 32) if each.name == "result")
    for value in line.result:
        expect(newcomer.get_by_text(f"{abs(value):.4f}".replace(".", ",")).last).to_be_visible()


RECORDED = {name: entry.site for name, entry in chapter_entries().items() if entry.site}


@pytest.mark.parametrize(("name", "language"), list(recorded_in().items()))
def test_a_recorded_chapter_follows_its_slider_and_everyone_can_use_it(
    alone: Page, site: str, name: str, language: str
) -> None:
    errors: list[str] = []
    alone.on("pageerror", lambda error: errors.append(str(error)))
    controls = RECORDED[name]
    sizes, places = zip(*((len(each["values"]), each["values"].index(each["start"])) for each in controls), strict=True)
    alone.goto(f"{site}{language}/{name}.html")
    figure, slider = alone.locator("[data-part=figure]"), alone.locator("[data-part=form] input").first
    expect(figure).to_have_attribute("data-frame", str(np.ravel_multi_index(places, sizes)))
    drawn = figure.locator(".chart[data-drawn], canvas:visible, svg:visible").first
    expect(drawn).to_be_visible()
    slider.press("Home" if places[0] else "End")
    other = (0 if places[0] else sizes[0] - 1, *places[1:])
    expect(figure).to_have_attribute("data-frame", str(np.ravel_multi_index(other, sizes)))
    expect(drawn).to_be_visible()
    alone.locator(".prediction summary").click()
    expect(alone.locator(".prediction details p")).to_be_visible()
    check_it_fits(alone)
    check_everyone_can_use_it(alone)
    assert errors == []


SAME = (
    (
        "transformer?t-text=I+am+lost.&t-search=beam+4&t-without=cross-3.2&head=cross.1.3&pin=q1&look=mode-links",
        "transformer.html#text=I+am+lost.&beam=4&off=cross.2.1&head=cross.1.3&pin=q1&look=mode-links",
    ),
    ("model-lab?ml-start=The+cat&ml-without=decoder-2", "writer.html#text=The+cat&off=decoder-self.1"),
    ("sinusoidal-encoding?se-d=64&se-base=100", "sinusoidal-encoding.html#d=3&base=0"),
)
OTHER = ("transformer?t-second=He+is+calm.", "sinusoidal-encoding?se-base=50000")


@pytest.fixture(scope="module")
def app_of_site(site: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The app of someone who has published the site."""
    with running(tmp_path_factory.mktemp("app"), settings={"ATLAS_SITE": site}) as server:
        yield server.url


def test_the_link_follows_the_url_and_is_hidden_where_no_page_shows_the_same(
    page: Page, site: str, app_of_site: str
) -> None:
    page.goto(f"{app_of_site}/transformer")
    link = page.get_by_role("link", name="Open without a server")
    expect(link).to_be_visible()
    page.get_by_label("An English sentence").fill("He is calm.")
    page.keyboard.press("Enter")
    expect(link).to_have_attribute("href", f"{site}en/transformer.html#text=He+is+calm.")
    for address, expected in SAME:
        page.goto(f"{app_of_site}/{address}")
        expect(link).to_have_attribute("href", f"{site}en/{expected}")
    for address in OTHER:
        page.goto(f"{app_of_site}/{address}")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.get_by_text("Open without a server")).to_be_hidden()


def test_every_page_that_is_offered_exists(site_folder: Path) -> None:
    files = {path.name for path in site_folder.glob("*/*/en/*.html")}
    chapters = ["walk", *all_chapters()[1:]]
    found = [static_pages(load_words(chapter), RECORDED.get(chapter, ())) for chapter in chapters]
    offered = {page["file"] for pages in found for page in pages}
    assert {f"{name}.html" for name in offered} <= files
    assert len(offered) == len(chapters)


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
        for width in (900, 320):
            alone.set_viewport_size({"width": width + 16, "height": 700})
            check_height(alone.locator("iframe"))
    host.unlink()


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


def test_a_failed_model_download_is_reported_and_retried(newcomer: Page, site: str) -> None:
    """Whatever file of the model is cut off."""
    newcomer.add_init_script("delete Navigator.prototype.serviceWorker")  # whose requests no route sees
    steps = [f"**/{step}?*" for step in STEPS]
    status = newcomer.get_by_role("status")
    for step in steps:
        newcomer.route(step, lambda route: route.abort())
        newcomer.goto(f"{site}en/writer.html")
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
