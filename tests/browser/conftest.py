"""A real Chromium against a real server."""

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, Request, expect

from benchmarks.serving import serve
from benchmarks.static_site import serve_site
from tests.browser.accessibility import found_in
from tests.browser.chromium import close_after_its_tests, open_browser, window
from tests.shared_server import shared_server, site_build, site_folder

__all__ = ["site_build", "site_folder"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def app_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The app, served for the whole session."""
    with shared_server("app.py", tmp_path_factory) as server:
        yield server.url


@pytest.fixture(scope="session")
def found_in_empty(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What axe-core finds wrong with an empty page, which is Streamlit's to mend."""
    with shared_server("benchmarks/peers/empty.py", tmp_path_factory) as server, window() as page:
        page.goto(server.url)
        expect(page.get_by_role("heading", level=1)).to_be_visible(timeout=60_000)
        return found_in(page)


@pytest.fixture(scope="module")
def lab_url(folders: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The lab on a server of its own, which knows `folders`, made by the test file, and asks no network."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATLAS_MODEL_FOLDERS", str(folders))
        patch.setenv("HF_HUB_OFFLINE", "1")
        with serve(tmp_path_factory.mktemp("server")) as url:
            yield f"{url}/model-lab"


@pytest.fixture(scope="session")
def sent() -> list[int]:
    """Bytes of each file of the site that was sent, the newest last."""
    return []


@pytest.fixture(scope="session")
def site(site_folder: Path, sent: list[int]) -> Iterator[str]:
    """The site without a server, on a plain file server."""
    with serve_site(site_folder, sent) as url:
        yield url


@pytest.fixture
def alone(browser: Browser, site: str) -> Iterator[Page]:
    """A window that reaches the site alone, in a browser that keeps the files of the pages it has visited before."""
    with _window_of_site(_visitors_context(browser), site) as page:
        yield page
        page.evaluate("() => localStorage.clear()")


@pytest.fixture
def newcomer(browser: Browser, site: str, sent: list[int]) -> Iterator[Page]:
    """A window that reaches the site alone, in a browser that has seen nothing yet; `sent` begins with its files."""
    context = browser.new_context(viewport={"width": 1400, "height": 1000}, reduced_motion="reduce")
    sent.clear()
    with _window_of_site(context, site) as page:
        yield page
    context.close()


@functools.lru_cache(maxsize=1)
def _visitors_context(browser: Browser) -> BrowserContext:
    return browser.new_context(viewport={"width": 1400, "height": 1000}, reduced_motion="reduce")


@contextmanager
def _window_of_site(context: BrowserContext, site: str) -> Iterator[Page]:
    """A window in which an uncaught error, or a request to any other address, fails the test."""
    other_addresses: list[str] = []
    errors: list[str] = []

    def only_here(route: Any) -> None:
        if route.request.url.startswith(site):
            route.continue_()
        else:
            route.abort()

    def note(request: Request) -> None:
        """Routes see nothing once the page has a service worker, this does."""
        if request.url.startswith("http") and not request.url.startswith(site):
            other_addresses.append(request.url)

    page = context.new_page()
    page.route("**/*", only_here)
    page.set_default_timeout(120_000)
    page.on("request", note)
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    page.close()
    assert not other_addresses, other_addresses
    assert not errors, errors


@pytest.fixture
def browser(request: pytest.FixtureRequest) -> Browser:
    close_after_its_tests(request.config)
    return open_browser()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    """A wide window; an uncaught error on the page fails the test."""
    errors: list[str] = []
    with window() as opened:
        opened.set_default_timeout(60_000)
        opened.on("pageerror", lambda error: errors.append(str(error)))
        yield opened
    assert not errors, errors
