"""A real Chromium against a real server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from benchmarks.serving import serve
from tests.browser.accessibility import found_in
from tests.browser.chromium import close_after_its_tests, open_browser, window
from tests.shared_server import shared_server


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


@pytest.fixture
def fresh_app_url(tmp_path: Path) -> Iterator[str]:
    """A server that nobody has visited yet."""
    with serve(tmp_path) as url:
        yield url


@pytest.fixture(scope="module")
def lab_url(folders: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The lab on a server of its own, which knows `folders`, made by the test file, and asks no network."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATLAS_MODEL_FOLDERS", str(folders))
        patch.setenv("HF_HUB_OFFLINE", "1")
        with serve(tmp_path_factory.mktemp("server")) as url:
            yield f"{url}/model-lab"


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
