"""The static site: everyone can use it, its recorded chapters follow their sliders, and the app links to its pages."""

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from benchmarks.serving import running
from benchmarks.static_site import APP, wait_until_ready
from tests.browser.accessibility import check_everyone_can_use_it, check_it_fits, keep_offline
from ui.chapter.contents import all_chapters, chapter_entries
from ui.text.words import load_words
from ui.widgets.sidebar import static_pages
from viz_core.lessons.relative_projection import proof_lines

LANGUAGES = ("en", "pt-BR", "zh-TW")
PAGES = ("transformer", "writer", "vision-transformer")


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


@pytest.mark.parametrize(("name", "language"), [(name, LANGUAGES[i % 3]) for i, name in enumerate(PAGES, 1)])
def test_the_pages_fit_a_phone_and_everyone_can_use_them(alone: Page, site: str, name: str, language: str) -> None:
    alone.goto(f"{site}{language}/{name}.html")
    wait_until_ready(alone)
    check_it_fits(alone)
    check_everyone_can_use_it(alone)


RECORDED = {name: entry.site for name, entry in chapter_entries().items() if entry.site}


@pytest.mark.parametrize(("name", "language"), [(name, LANGUAGES[i % 3]) for i, name in enumerate(RECORDED)])
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
    before = figure.screenshot()
    slider.press("Home" if places[0] else "End")
    other = (0 if places[0] else sizes[0] - 1, *places[1:])
    expect(figure).to_have_attribute("data-frame", str(np.ravel_multi_index(other, sizes)))
    expect(drawn).to_be_visible()
    alone.wait_for_timeout(300)
    assert figure.screenshot() != before
    alone.locator(".prediction summary").click()
    expect(alone.locator(".prediction details p")).to_be_visible()
    check_it_fits(alone)
    check_everyone_can_use_it(alone)
    assert errors == []


def test_a_recorded_chapter_says_what_it_lacks_and_is_there_offline_once_visited(newcomer: Page, site: str) -> None:
    newcomer.add_init_script("delete Navigator.prototype.serviceWorker")
    for file in ("recorded/linear-attention", "vendor/plotly"):
        newcomer.route(f"**/{file}*", lambda route: route.abort())
        newcomer.goto(f"{site}en/linear-attention.html")
        expect(newcomer.get_by_text("The figures could not be loaded. Check your connection")).to_be_visible()
        newcomer.unroute(f"**/{file}*")
    newcomer.reload()
    expect(newcomer.locator("[data-part=figure]")).to_have_attribute("data-frame", "11")


SAME = (
    (
        "transformer?t-text=I+am+lost.&t-search=beam+4&t-without=cross-3.2&head=cross.1.3&pin=q1&look=mode-links",
        "transformer.html#text=I+am+lost.&beam=4&off=cross.2.1&head=cross.1.3&pin=q1&look=mode-links",
    ),
    ("vision-transformer?vt-model=vit-cifar10&vt-sample=cat", "vision-transformer.html#model=vit-cifar10&sample=cat"),
    (
        "model-lab?ml-start=The+cat&ml-without=decoder-2",
        "writer.html#text=The+cat&off=decoder-self.1",
    ),
)
OF_SLIDERS = ("sinusoidal-encoding?se-d=64&se-base=100", "sinusoidal-encoding.html#d=3&base=0")
OTHER = ("transformer?t-second=He+is+calm.", "walk", "sinusoidal-encoding?se-base=50000", "heads?hs-x=nearby")


@pytest.fixture(scope="module")
def app_of_site(site: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The app of someone who has published the site."""
    with running(tmp_path_factory.mktemp("app"), settings={"ATLAS_SITE": site}) as server:
        yield server.url


def open_head(page: Page) -> Locator:
    return page.locator("[role=gridcell][aria-selected=true]").first


def test_the_static_page_shows_the_same(page: Page, site: str, app_of_site: str) -> None:
    for address, expected in SAME:
        page.goto(f"{app_of_site}/{address}")
        link = page.get_by_role("link", name="Open without a server")
        expect(link).to_have_attribute("href", f"{site}en/{expected}")
        head = open_head(page).get_attribute("aria-label")
        note = page.locator("[data-part=sentenceNote]").first
        expect(note).not_to_be_empty()
        pinned = note.inner_text()
        with page.context.expect_page() as opened:
            link.click()
        static = opened.value
        wait_until_ready(static)
        expect(open_head(static)).to_have_attribute("aria-label", head or "")
        expect(static.locator("[data-part=sentenceNote]").first).to_have_text(pinned)
        answer = static.locator("[data-part=result]").inner_text().strip()
        expect(page.get_by_text(answer.split(",")[0], exact=False).first).to_be_visible()
        static.close()


def test_the_link_follows_the_url_and_is_hidden_where_no_page_shows_the_same(
    page: Page, site: str, app_of_site: str
) -> None:
    page.goto(f"{app_of_site}/transformer")
    link = page.get_by_role("link", name="Open without a server")
    expect(link).to_be_visible()
    page.get_by_label("An English sentence").fill("He is calm.")
    page.keyboard.press("Enter")
    expect(link).to_have_attribute("href", f"{site}en/transformer.html#text=He+is+calm.")
    address, expected = OF_SLIDERS
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
