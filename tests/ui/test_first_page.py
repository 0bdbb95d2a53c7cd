"""What a browser is sent first: a chapter's scripts are named in it, each where it is, and no other."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import streamlit
from starlette.applications import Starlette
from starlette.testclient import TestClient

from hosting import scripts
from hosting.headers import policy
from ui import first_page
from ui.contents import all_chapters
from viz_core.runtime.assets import AssetError

STATIC = Path(streamlit.__file__).parent / "static"
CHARTS = {name: name not in ("transformer", "model-lab") for name in all_chapters()[1:]}


@pytest.fixture
def client() -> TestClient:
    return TestClient(Starlette(routes=[*scripts.routes(), *first_page.routes()]))


@pytest.mark.parametrize(("chapter", "charts"), CHARTS.items())
@pytest.mark.parametrize("base", ["", "/class"])
def test_a_chapter_names_what_it_will_need(client: TestClient, base: str, chapter: str, charts: bool) -> None:
    answer = client.get(f"{base}/{chapter}?lang=en")
    assert answer.headers["cache-control"] == "no-cache"
    named = re.findall(r'<link rel="(?:module)?preload"[^>]* href="\./([^"]+\.js)"', answer.text)
    assert len(named) == len(set(named))
    ours = [name for name in named if name.startswith("atlas/")]
    assert [client.get(f"{base}/{name}").status_code for name in ours] == [200] * len(ours)
    assert all((STATIC / name).is_file() for name in named if name not in ours)
    picture = "chart" if charts else "attention_view"
    of_components = [scripts.script(name).address for name in ("history", "near", "present", "tour", picture)]
    assert ours == [*of_components, *([scripts.script(scripts.PLOTLY).address] if charts else [])]
    assert all(any(f"/{chunk}." in name for name in named) for chunk in ("BidiComponent", "Slider", "ButtonGroup"))
    plain = (STATIC / "index.html").read_text(encoding="utf-8")
    assert set(plain.splitlines()) <= set(answer.text.splitlines())  # nothing of Streamlit's own is gone


@pytest.mark.parametrize("path", ["/", "/home", "/nobody", "/transformer/x", "/a-transformer"])
def test_all_else_is_streamlits_to_answer(client: TestClient, path: str) -> None:
    assert client.get(path).status_code == 404


def test_the_scripts_that_stand_in_it_may_run_where_strangers_visit() -> None:
    page = first_page.first_page(charts=True)
    assert policy(page=page).count("'sha256-") == page.count("<script>") == 2


def test_a_damaged_script_is_told_where_it_is_needed_and_the_page_comes(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def damaged(name: str) -> None:
        raise AssetError(name)

    first_page.first_page.cache_clear()
    monkeypatch.setattr(first_page, "script", damaged)
    answer = client.get("/scoring-functions")
    first_page.first_page.cache_clear()
    assert answer.status_code == 200
    assert "atlas/" not in answer.text
