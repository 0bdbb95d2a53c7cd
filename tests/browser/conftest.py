"""A real Chromium against a real server."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from benchmarks.serving import serve
from benchmarks.static_site import build_site_below, serve_site
from tests.browser.accessibility import found_in
from tests.browser.chromium import close_after_its_tests, open_browser, window
from tests.shared_server import run_folder, shared_server


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


@pytest.fixture(scope="session")
def site_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the site without a server at a sub-path, built once in a run."""
    root = run_folder(tmp_path_factory) / "site"
    root.mkdir(exist_ok=True)
    with (root / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            if not any(root.glob("*/")):
                build_site_below(root)
        except RuntimeError as error:
            if "URLError" not in str(error):
                raise
            pytest.skip("the npm registry cannot be reached, and onnxruntime-web is not in build/cache")
    return root


@pytest.fixture(scope="session")
def site(site_folder: Path) -> Iterator[str]:
    """The site without a server, on a plain file server."""
    with serve_site(site_folder) as url:
        yield url


@pytest.fixture
def alone(browser: Browser, site: str) -> Iterator[Page]:
    """A browser that has seen nothing yet and reaches the site alone; it asks for nothing else."""
    context = browser.new_context(viewport={"width": 1400, "height": 1000}, reduced_motion="reduce")
    blocked: list[str] = []
    errors: list[str] = []

    def only_here(route: Any) -> None:
        if route.request.url.startswith(site):
            route.continue_()
        else:
            blocked.append(route.request.url)
            route.abort()

    context.route("**/*", only_here)
    page = context.new_page()
    page.set_default_timeout(120_000)
    page.on("pageerror", lambda error: errors.append(str(error)))
    yield page
    context.close()
    assert not blocked
    assert not errors


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
