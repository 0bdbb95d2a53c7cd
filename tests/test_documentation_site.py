"""The documentation site builds without a warning, holds every public name, and loads nothing from other servers."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.pages.test_code import CHAPTERS, shown_code
from tests.source_files import ROOT
from ui.chapter.chapter import reference_address
from ui.text.words import languages
from viz_core.runtime.assets import ASSETS

APP = "https://atlas.example"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    given = {**os.environ, "ATLAS_ADDRESS": APP}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=given)
    assert done.returncode == 0, done.stderr[-2000:]
    return folder


def test_the_reference_holds_every_public_name(site: Path) -> None:
    pages = {path.stem: path.read_text("utf-8") for path in (site / "reference").glob("*.html")}
    assert len(pages) > 10
    for page, html in pages.items():
        package = importlib.import_module("viz_core" if page == "index" else f"viz_core.{page}")
        titles = re.sub(r"<[^>]+>", " ", " ".join(re.findall(r"<h2.*?</h2>", html, re.DOTALL))).split()
        assert {name for name in package.__all__ if name not in titles} == set(), page


def test_code_of_chapters_and_reference_link_to_each_other(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATLAS_DOCS", "https://docs.example/atlas/")
    described = 0
    for chapter in CHAPTERS:
        for function in shown_code(chapter):
            address = reference_address(function)
            if address is None:
                continue
            page, _, anchor = address.removeprefix("https://docs.example/atlas/").partition("#")
            html = (site / page).read_text("utf-8")
            assert f'id="{anchor}"' in html, address
            assert f'href="{APP}/{chapter.replace("_", "-")}"' in html, (address, chapter)
            described += 1
    assert described > len(CHAPTERS)


def test_it_loads_nothing_from_other_servers(site: Path) -> None:
    for path in site.rglob("*.html"):
        loaded = re.findall(r"<(?:script|link|img|iframe)[^>]*(?:src|href)=\"(https?:[^\"]+)", path.read_text("utf-8"))
        assert loaded == [], path


def test_links_of_the_course_lead_to_the_app(site: Path) -> None:
    """To the address that the build was given, and between lessons to pages of the site."""
    for language in languages():
        html = (site / "teach" / language / "index.html").read_text("utf-8")
        assert f'href="{APP}/queries-keys-values?lang={language}' in html
        assert 'href="http://localhost:8501' not in html
        assert 'href="lesson-6.html"' in html


def test_without_a_site_code_has_no_links(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ATLAS_DOCS", raising=False)
    assert {reference_address(function) for chapter in CHAPTERS for function in shown_code(chapter)} == {None}


def test_model_cards_and_pictures_are_part_of_it(site: Path) -> None:
    for card in ASSETS.glob("checkpoints/*/card.md"):
        assert (site / "models" / f"{card.parent.name}.html").is_file()
    assert (site / "assets" / "transformer.png").is_file()
