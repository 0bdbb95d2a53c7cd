"""What a browser is sent first: a chapter's scripts are named in it, each where it is, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import streamlit
from starlette.applications import Starlette
from starlette.testclient import TestClient

from serving.http import static_scripts as scripts
from serving.http.security_headers import policy
from ui.app import index_page
from ui.chapter.contents import all_chapters, all_pages, chapter_entries
from viz_core.runtime.assets import AssetError

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


def test_home_names_its_own(client: TestClient) -> None:
    named = named_in(client.get("/").text)
    assert {scripts.script(name).address for name in ("history", "tour", "seen")} < set(named)
    assert any("/ImageList." in name for name in named)
    assert not any("/Slider." in name or "plotly" in name for name in named)


def test_home_is_where_the_app_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_page.st, "get_option", {"server.baseUrlPath": "/class/2/"}.__getitem__)
    client = TestClient(Starlette(routes=index_page.routes()))
    assert client.get("/class/2/").status_code == 200
    assert client.get("/").status_code == 404


@pytest.mark.parametrize("path", ["/home", "/nobody", "/transformer/x", "/a-transformer"])
def test_all_else_is_streamlits_to_answer(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


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
