"""The documentation site is whole, and what its guides show is what the library prints."""

import ast
import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tests.notebooks import printed, run_notebook, shows
from tests.pages.test_code import CHAPTERS, shown_code
from tests.source_files import ROOT
from ui.chapter.chapter import reference_address
from ui.text.words import languages
from viz_core.runtime.assets import ASSETS

APP = "https://atlas.example"
PUBLISHED = "https://pages.example/atlas"  # the site without a server, with the documentation in its folder docs


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    given = {**os.environ, "ATLAS_ADDRESS": APP, "ATLAS_SITE": PUBLISHED}
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


def test_links_from_elsewhere_show_title_and_picture(site: Path) -> None:
    for path in site.rglob("*.html"):
        tags = dict(re.findall(r'<meta property="og:(\w+)" content="([^"]+)">', path.read_text("utf-8")))
        if path.name == "404.html":
            continue
        assert tags.keys() == {"type", "title", "description", "image"}, path
        assert (site / tags["image"].removeprefix(f"{PUBLISHED}/docs/")).is_file()
    titles = [
        re.findall(r'og:title" content="([^"]+)"', (site / name).read_text("utf-8"))
        for name in ("library.html", "faq.html")
    ]
    assert titles[0] != titles[1]


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


DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGES = (DOCS / "library.md", *sorted((DOCS / "how-to").glob("*.md")))
MAX_LINES = 10
WIDGET = "application/vnd.jupyter.widget-view+json"


def text() -> str:
    """All pages with examples."""
    return "\n".join(page.read_text("utf-8") for page in PAGES)


def examples() -> list[tuple[str, str]]:
    """The heading an example stands under, and its code."""
    found, heading = [], ""
    for part in re.split(r"^(##? [^\n]+|```python\n.*?^```)$", text(), flags=re.MULTILINE | re.DOTALL):
        if part.startswith("#"):
            heading = part.lstrip("# ")
        elif part.startswith("```python"):
            found.append((heading, part.removeprefix("```python\n").removesuffix("```")))
    return found


@pytest.mark.parametrize("code", [pytest.param(code, id=f"{i} {name}") for i, (name, code) in enumerate(examples())])
def test_an_example_runs_by_itself(code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [line for line in code.splitlines() if line.strip() and not line.startswith(("import ", "from "))]
    assert len(lines) <= MAX_LINES
    tree = ast.parse(code)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    names: dict[str, object] = {}
    exec(compile(tree, "example", "exec"), names)
    if last is not None:  # what a notebook would show
        value = eval(compile(ast.Expression(last.value), "example", "eval"), names)
        assert value is None or len(repr(value)) < 200


def test_the_guide_has_an_example_of_each_kind() -> None:
    code = "\n".join(code for _, code in examples())
    for name in (
        "load(",
        "record()",
        "attend(",
        "view(",
        ".save(",
        "load_trace(",
        "load_hub(",
        "instrument(",
        "torch_calls=",
        "adopt(",
        "Trace.merge(",
    ):
        assert name in code


def test_the_guide_loads_nothing_that_an_installation_lacks() -> None:
    """What `make test` installs besides would hide it."""
    named = re.findall(r'load_hub\("([^"]+)"\)', text())
    assert named
    assert set(named) <= {path.parent.name for path in (ASSETS / "hub").glob("*/config.json")}


def test_views_of_the_guide_are_shown_in_a_notebook(tmp_path: Path) -> None:
    first, *codes = [code for _, code in examples()]
    views = [code for code in codes if re.search(r"\bview\(|^shown$", code.splitlines()[-1])]
    assert len(views) >= 5
    outputs = run_notebook(new_notebook(cells=[new_code_cell(code) for code in (first, *views)]), tmp_path)
    assert printed(outputs[0]).startswith("Il est calme.\n")
    assert [WIDGET in shows(each) for each in outputs] == [False] + [True] * len(views)
    assert (tmp_path / "attention.html").stat().st_size > 50_000
