"""The page that a browser loads first, the middleware on one's own machine, and the warm-up."""

from __future__ import annotations

import logging
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import streamlit
from starlette.applications import Starlette
from starlette.testclient import TestClient
from streamlit import config

from serving.compute.slots import reset_singletons
from serving.http import static_scripts as scripts
from serving.http.security_headers import policy
from serving.requests.hub import HubModelSpec
from serving.requests.models import ShippedClassifier, ShippedTranslator
from tests.viz_core.hub.families import build_all
from ui.app import index_page, local_middleware
from ui.app.warm_up import warm_up
from ui.chapter.contents import all_chapters, all_pages, chapter_entries
from ui.compute.models import registry
from ui.compute.slots import results
from viz_core.pretrained import available
from viz_core.runtime.assets import ASSETS, AssetError

STATIC = Path(streamlit.__file__).parent / "static"
CHAPTERS = all_chapters()[1:]
OF_CHAPTERS = ("history", "lazy_parts", "present", "tour")
PICTURES = {
    "transformer": ("attention_view", "walk"),
    "bahdanau": ("attention_view", "chart"),
    "position-embeddings": ("chart",),
    "scoring-functions": ("chart",),
}


@pytest.fixture
def client() -> TestClient:
    return TestClient(Starlette(routes=[*scripts.routes(), *index_page.routes()]))


def named_in(page: str) -> list[str]:
    return re.findall(r'<link rel="(?:module)?preload"[^>]* href="\./([^"]+\.js)"', page)


@pytest.mark.parametrize("chapter", CHAPTERS)
@pytest.mark.parametrize("base", ["", "/class"])
def test_a_chapter_names_what_it_will_need(client: TestClient, base: str, chapter: str) -> None:
    answer = client.get(f"{base}/{chapter}?lang=en")
    assert answer.headers["cache-control"] == "no-cache"
    named = named_in(answer.text)
    assert len(named) == len(set(named))
    ours = [name for name in named if name.startswith("atlas/")]
    assert [client.get(f"{base}/{name}").status_code for name in ours] == [200] * len(ours)
    assert all((STATIC / name).is_file() for name in named if name not in ours)
    chunks = ("BidiComponent", "Slider", "ButtonGroup", *chapter_entries()[chapter].streamlit_scripts)
    assert all(any(f"/{chunk}." in name for name in named) for chunk in chunks)
    plain = (STATIC / "index.html").read_text(encoding="utf-8")
    assert set(plain.splitlines()) <= set(answer.text.splitlines())  # nothing of Streamlit's own is gone


@pytest.mark.parametrize(("chapter", "pictures"), PICTURES.items())
def test_the_script_of_its_picture_is_among_them(chapter: str, pictures: tuple[str, ...]) -> None:
    ours = [name for name in named_in(index_page.index_page(chapter)) if name.startswith("atlas/")]
    plotly = [scripts.PLOTLY] if "chart" in pictures else []
    assert ours == [scripts.script(name).address for name in (*OF_CHAPTERS, *pictures, *plotly)]


def test_home_names_its_own_and_is_where_the_app_is_served(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    named = named_in(client.get("/").text)
    assert {scripts.script(name).address for name in ("history", "tour", "seen")} < set(named)
    assert any("/ImageList." in name for name in named)
    assert not any("/Slider." in name or "plotly" in name for name in named)
    assert client.get("/transformer/x").status_code == 404  # Streamlit's to answer
    monkeypatch.setattr(index_page.st, "get_option", {"server.baseUrlPath": "/class/2/"}.__getitem__)
    client = TestClient(Starlette(routes=index_page.routes()))
    assert [client.get(path).status_code for path in ("/class/2/", "/")] == [200, 404]


@pytest.mark.parametrize("name", all_pages())
def test_a_page_has_its_style_before_anything_is_painted(name: str) -> None:
    head, body = index_page.index_page(name).split("<body>")
    assert (ASSETS / "components" / "app.css").read_text(encoding="utf-8") in body.split("</style>")[0]
    assert "dataset.loading" in head


def test_an_address_that_is_no_page_is_styled_as_home_and_files_are_left_to_streamlit(client: TestClient) -> None:
    for path in ("/home", "/nobody", "/a-transformer"):
        assert client.get(path).text == index_page.index_page(all_pages()[0])
    assert [client.get(path).status_code for path in ("/favicon.png", "/_stcore", "/static/none")] == [404] * 3


def test_the_scripts_that_stand_in_them_may_run_where_strangers_visit() -> None:
    pages = [index_page.index_page(name) for name in all_pages()]
    inline = {script for page in pages for script in re.findall(r"<script>(.*?)</script>", page, flags=re.DOTALL)}
    assert policy(pages="".join(pages)).count("'sha256-") == len(inline) > 0
    assert all("window.__streamlit" in page for page in pages)


def test_a_damaged_script_is_told_where_it_is_needed_and_the_page_comes(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(name: str) -> None:
        raise AssetError(name)

    index_page.index_page.cache_clear()
    monkeypatch.setattr(index_page, "script", damaged)
    answer = client.get("/scoring-functions")
    index_page.index_page.cache_clear()
    assert answer.status_code == 200
    assert "atlas/" not in answer.text


pytestmark = pytest.mark.attack("cross-site")


@pytest.fixture
def options(monkeypatch: pytest.MonkeyPatch) -> dict[str, object]:
    """Streamlit's options, as the test sets them."""
    given: dict[str, object] = {
        "server.enableCORS": True,
        "server.allowedHosts": [],
        "server.corsAllowedOrigins": ["https://atlas.example"],
        "server.address": "localhost",
        "browser.serverAddress": None,
    }
    monkeypatch.setattr(config, "get_option", given.__getitem__)
    return given


def test_the_names_of_this_machine_and_what_is_set(options: dict[str, object]) -> None:
    options["server.allowedHosts"] = ["lab.example"]
    names = local_middleware._own_names()
    assert names is not None
    assert {socket.gethostname(), "lab.example"} <= set(names)
    assert local_middleware._trusted_origins() == ["https://atlas.example"]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    reset_singletons()
    yield
    reset_singletons()


def test_the_lab_models_that_are_offered_are_loaded_and_one_that_is_missing_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("ATLAS_MODEL_FOLDERS", str(build_all(("bert",), tmp_path)))
    monkeypatch.setenv("ATLAS_MODELS", "../nonsense,bert")
    with caplog.at_level(logging.WARNING, "atlas"):
        warm_up()
    assert len(caplog.records) == 1
    event: Any = caplog.records[0].msg
    assert event["model"] == "../nonsense"
    assert HubModelSpec("bert") in registry()
    assert HubModelSpec("../nonsense") not in registry()
    for task, spec in (("translation", ShippedTranslator), ("classification", ShippedClassifier)):
        assert all(spec(card.name) in registry() for card in available(task=task))
    assert len(results()) >= len(available())
