"""The static site: everyone can use it, and the app links to pages that show the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Locator, Page, expect

from benchmarks.serving import running
from benchmarks.static_site import wait_until_ready
from static_site.build import MOVED
from tests.browser.accessibility import check_every_language
from ui.chapter.contents import all_chapters
from ui.text.words import load_words
from ui.widgets.sidebar import static_pages

LANGUAGES = ("en", "pt-BR", "zh-TW")
PAGES = ("transformer", "writer", "vision-transformer")


def test_the_table_of_contents_leads_to_every_page(alone: Page, site: str) -> None:
    listed = [path for path in json.loads(alone.goto(f"{site}files.json").text()) if path.endswith(".html")]
    for language in LANGUAGES:
        names = {Path(path).name for path in listed if path.startswith(f"{language}/")}
        pages = {name for name in names if not name.startswith(("index", "view", *MOVED))}
        alone.goto(f"{site}{language}/")
        links = alone.locator(".cards a")
        assert {link.get_attribute("href") for link in links.all()} == pages
        links.first.press("Enter")
        alone.get_by_role("banner").get_by_role("link").first.press("Enter")
        expect(links).to_have_count(len(pages))


@pytest.mark.parametrize("name", PAGES)
def test_the_pages_fit_a_phone_and_everyone_can_use_them(alone: Page, site: str, name: str) -> None:
    check_every_language(alone, site, name)


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
OTHER = ("transformer?t-second=He+is+calm.", "walk", "sinusoidal-encoding")


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
        with page.context.expect_page() as opened:
            link.click()
        static = opened.value
        wait_until_ready(static)
        expect(open_head(static)).to_have_attribute("aria-label", head or "")
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
    assert len(offered) == 4
