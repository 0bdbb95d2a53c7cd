"""The static site: its formulas are viz_core's, everyone can use it, and the app links to pages that show the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from playwright.sync_api import Locator, Page, expect

from benchmarks.serving import running
from benchmarks.static_site import wait_until_ready
from static_site.chapter_pages import recorded_chapters
from tests.browser.accessibility import check_everyone_can_use_it, check_it_fits
from ui.chapter.contents import all_chapters
from ui.text.words import load_words
from ui.widgets.sidebar import static_pages
from viz_core.lessons import relative_projection as proof
from viz_core.lessons import sinusoidal_encoding as properties
from viz_core.positional import relative_projection, sinusoidal_table

LANGUAGES = ("en", "pt-BR", "zh-TW")
PAGES = ("sinusoidal-encoding", "relative-projection", "transformer", "writer", "vision-transformer")
TABLES = ((60, 32, 10_000), (2000, 512, 10_000), (128, 33, 7), (1, 2, 1), (300, 6, 20_000))
MOVES = ((5, 3, 3, 32), (-100, 200, 15, 32), (0, 0, 0, 32), (77, 41, 8, 64))
LARGEST = 1e-12  # a sine of an angle of 2,000 radians is off by at most 2e-13

OF_TABLE = """async ([n, d, base]) => {
  const { sinusoids, normError, wavelengthError, offsetError } = await import(new URL("../formulas.js", location));
  const table = sinusoids(n, d, base, Float64Array);
  const errors = [normError(table, n, d, base), wavelengthError(table, n, d, base), offsetError(table, n, d)];
  const rows = [0, n >> 1, n - 1].map((row) => [...table.subarray(row * d, (row + 1) * d)]);
  return [rows, errors];
}"""
OF_MOVE = """async ([offset, position, pair, width]) => {
  const rotation = await import(new URL("../formulas.js", location));
  return {
    blocks: rotation.relativeProjection(offset, width, 10000),
    lines: rotation.proofLines(offset, position, pair, width, 10000),
    residual: rotation.projectionResidual(offset, width, 10000),
    mirrored: rotation.projectionResidual(offset, width, 10000, true),
    spread: rotation.rotationSpread(offset, width, 10000),
    bound: rotation.roundingBound(1000 + Math.abs(offset)),
  };
}"""


def test_sinusoids_are_those_of_the_library(alone: Page, site: str) -> None:
    alone.goto(f"{site}en/sinusoidal-encoding.html")
    for n, d, base in TABLES:
        values, (norm, wavelength, offset) = alone.evaluate(OF_TABLE, [n, d, base])
        table = sinusoidal_table(n, d, base, dtype=torch.float64)
        assert np.abs(np.array(values) - table[[0, n // 2, n - 1]].numpy()).max() < LARGEST
        assert norm == pytest.approx(properties.norm_error(table, base), abs=LARGEST)
        assert offset == pytest.approx(properties.offset_error(properties.paired(table)), abs=1e-10)
        if n > 1:
            assert wavelength == pytest.approx(properties.wavelength_error(table, base), abs=1e-9)


def test_the_rotation_and_its_proof_are_those_of_the_library(alone: Page, site: str) -> None:
    alone.goto(f"{site}en/relative-projection.html")
    for offset, position, pair, width in MOVES:
        found = alone.evaluate(OF_MOVE, [offset, position, pair, width])
        M = relative_projection(offset, width).numpy()
        blocks = np.array([[M[2 * j, 2 * j], M[2 * j, 2 * j + 1]] for j in range(width // 2)])
        assert np.abs(np.array(found["blocks"]) - blocks).max() < LARGEST
        bound = proof.rounding_bound(1000 + abs(offset))
        assert found["bound"] == bound
        assert found["residual"] <= bound
        assert found["spread"] <= bound
        mirrored = proof.projection_residual(offset, width, torch.arange(1000), mirrored=True)
        assert found["mirrored"] == pytest.approx(float(mirrored.max()), abs=LARGEST)
        for own, line in zip(found["lines"], proof.proof_lines(offset, position, pair, width), strict=True):
            assert own["name"] == line.name
            assert own["result"] == pytest.approx(line.result, abs=LARGEST)
            assert own["residual"] <= bound
            assert {key: own["numbers"][key] for key in line.numbers} == pytest.approx(line.numbers, abs=LARGEST)


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
    expect(newcomer.locator(".claims [data-holds=true]")).to_have_count(3)
    newcomer.get_by_label("Dimensions d").press("ArrowRight")
    expect(newcomer.locator("html")).to_have_attribute("data-measured", "60,33,10000")
    assert newcomer.url.endswith("#d=33")
    expect(newcomer.locator(".heatmap .stage")).to_have_attribute("data-columns", "33")
    expect(newcomer.get_by_text("squared length 16 + sin² of its last angle")).to_be_visible()
    newcomer.evaluate("() => navigator.serviceWorker.ready")
    newcomer.context.set_offline(True)
    newcomer.goto(f"{site}pt-BR/relative-projection.html#offset=-7&position=9&pair=2")
    expect(newcomer.locator(".claims [data-holds=true]")).to_have_count(6)
    line = next(each for each in proof.proof_lines(-7, 9, 2, 32) if each.name == "result")
    expect(newcomer.locator("[data-part=numbers-result] [data-number=sine]")).to_have_text(
        f"{line.result[0]:.4f}".replace(".", ",").replace("-", "−")
    )


@pytest.mark.parametrize(("name", "language"), [(name, LANGUAGES[i % 3]) for i, name in enumerate(PAGES, 1)])
def test_the_pages_fit_a_phone_and_everyone_can_use_them(alone: Page, site: str, name: str, language: str) -> None:
    alone.goto(f"{site}{language}/{name}.html")
    wait_until_ready(alone)
    check_it_fits(alone)
    check_everyone_can_use_it(alone)


RECORDED = recorded_chapters()


@pytest.mark.parametrize(("name", "language"), [(name, LANGUAGES[i % 3]) for i, name in enumerate(RECORDED)])
def test_a_recorded_chapter_follows_its_slider_and_everyone_can_use_it(
    alone: Page, site: str, name: str, language: str
) -> None:
    errors: list[str] = []
    alone.on("pageerror", lambda error: errors.append(str(error)))
    values, start = RECORDED[name]["values"], RECORDED[name]["start"]
    alone.goto(f"{site}{language}/{name}.html")
    figure, slider = alone.locator("[data-part=figure]"), alone.locator("[data-part=form] input")
    expect(figure).to_have_attribute("data-frame", str(values.index(start)))
    drawn = figure.locator(".chart[data-drawn], canvas:visible, svg:visible").first
    expect(drawn).to_be_visible()
    before = figure.screenshot()
    slider.press("Home" if values.index(start) else "End")
    expect(figure).to_have_attribute("data-frame", "0" if values.index(start) else str(len(values) - 1))
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
OTHER = ("transformer?t-second=He+is+calm.", "walk", "sinusoidal-encoding?se-base=50000")


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
        pinned = page.locator("[data-part=sentenceNote]").first.inner_text()
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
    for address in OTHER:
        page.goto(f"{app_of_site}/{address}")
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.get_by_text("Open without a server")).to_be_hidden()


def test_every_page_that_is_offered_exists(site_folder: Path) -> None:
    files = {path.name for path in site_folder.glob("*/*/en/*.html")}
    offered = {page["file"] for chapter in ("walk", *all_chapters()) for page in static_pages(load_words(chapter))}
    assert {f"{name}.html" for name in offered} <= files
    assert len(offered) == 6
