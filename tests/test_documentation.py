"""The documentation is whole, its guides run, and the worked examples of CONTRIBUTING.md pass the contract tests."""

import ast
import importlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook

from tests.faults import copy_tree
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
    titles = {}
    for path in {*site.rglob("*.html")} - {site / "404.html"}:
        tags = dict(re.findall(r'<meta property="og:(\w+)" content="([^"]+)">', path.read_text("utf-8")))
        assert tags.keys() == {"type", "title", "description", "image"}, path
        assert (site / tags["image"].removeprefix(f"{PUBLISHED}/docs/")).is_file()
        titles[path.name] = tags["title"]
    assert titles["library.html"] != titles["faq.html"]


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


def test_the_guide_loads_nothing_that_an_installation_lacks() -> None:
    """What `make test` installs besides would hide it."""
    named = re.findall(r'load_hub\("([^"]+)"\)', text())
    assert named
    assert set(named) <= {path.parent.name for path in (ASSETS / "hub").glob("*/config.json")}


def test_views_of_the_guide_are_shown_in_a_notebook(tmp_path: Path) -> None:
    """By a kernel as JupyterLab's, which starts in a folder of its own."""
    first, *codes = [code for _, code in examples()]
    views = [code for code in codes if re.search(r"\bview\(|^shown$", code.splitlines()[-1])]
    assert len(views) >= 5
    cells = [f"import sys; sys.path.insert(0, {str(ROOT)!r})", first, *views]
    book = new_notebook(cells=[new_code_cell(code) for code in cells])
    NotebookClient(book, timeout=300, kernel_name="python3", resources={"metadata": {"path": str(tmp_path)}}).execute()
    _, text, *shown = [cell.outputs for cell in book.cells]
    assert text[0].text.startswith("Il est calme.\n")
    assert all(any(WIDGET in output.get("data", {}) for output in outputs) for outputs in shown)
    assert (tmp_path / "attention.html").stat().st_size > 50_000


GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^ *```(\w+)\n(.*?)^ *```", GUIDE, re.MULTILINE | re.DOTALL)
REGISTER_WORDS = "tests/test_words.py::test_entries_of_registers_have_their_words"
# Example, its file, what is renamed in a copy of it, its words by file, the tests of the register, and its name there.
ENTRIES = {
    "scheme": (
        "viz_core/positional/alibi.py",
        {'"alibi"': '"example"', "order=8": "order=99", "ALIBI": "EXAMPLE"},
        {"position-embeddings": ("about.", "formula.", "extends."), "shared": ("option.",)},
        "tests/viz_core/positional/test_register.py",
    ),
    "score": (
        "viz_core/attention/scores/general.py",
        {'"general"': '"example"', "order=2": "order=99", "GENERAL": "EXAMPLE"},
        {"scoring-functions": ("option.", "formula.")},
        "tests/viz_core/attention/test_score_register.py",
    ),
    "measure": (
        "viz_core/maps/head_measures/entropy.py",
        {'"entropy"': '"example"', "order=0": "order=99"},
        {"attention-view": ("measure_", "about_")},
        "tests/viz_core/maps/test_register.py",
    ),
}


def add_words(tree: Path, language: str, file: str, sections: dict[str, str]) -> None:
    path = tree / "assets" / "text" / language / f"{file}.md"
    added = "".join(f"\n## {name}\n{text}\n" for name, text in sections.items())
    path.write_text(path.read_text(encoding="utf-8") + added, encoding="utf-8")


@pytest.mark.parametrize("example", ENTRIES)
def test_the_code_of_an_entry_is_in_its_file(example: str) -> None:
    """Without the comments that the file has at the ends of lines and between them."""
    code = (ROOT / ENTRIES[example][0]).read_text(encoding="utf-8")
    plain = re.sub(r"^ *#.*\n|  #.*$", "", code, flags=re.MULTILINE)
    assert any(block in plain for _, block in BLOCKS)


OWN_TESTS = """
from static_site.pages import LANGUAGES
from static_site.recorded_pages import record_chapter
from tests.pages.reading import badges
from ui.chapter.contents import chapter_entries
from ui.text.missing import missing

def test_the_chapter_opens_and_is_recorded(open_page):
    app = open_page("softmax-temperature", **{"st-temperature": "2"})
    assert not app.error
    assert all(badges(app).values())
    site = chapter_entries()["softmax-temperature"].site
    assert record_chapter("softmax-temperature", site, "en").shown == [["0.5", "1.0", "2.0"]]

def test_the_language_opens_and_what_it_lacks_is_known(open_page):
    app = open_page("linear-attention", lang="es")
    assert not app.error
    assert "Español" in app.sidebar.selectbox[0].options
    assert "es" in LANGUAGES
    lacks = list(missing("es"))
    assert lacks
    assert all(line.endswith("is still in English") for line in lacks), lacks
"""


def test_entries_of_registers_a_chapter_and_a_language_are_added(tmp_path: Path) -> None:
    copy_tree(tmp_path)
    add_entries(tmp_path)
    add_chapter(tmp_path, "softmax-temperature")
    add_language(tmp_path)
    tests = [REGISTER_WORDS, *(tests for *_, tests in ENTRIES.values()), "tests/ui/test_contents.py"]
    tests += ["tests/pages/test_contract.py", "tests/pages/softmax_temperature"]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests]
    command += ["-k", "example or words or softmax-temperature or softmax_temperature"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def add_entries(tree: Path) -> None:
    for source, renamed, *_ in ENTRIES.values():
        code = (tree / source).read_text(encoding="utf-8")
        for old, new in renamed.items():
            assert old in code
            code = code.replace(old, new)
        (tree / source).with_name("example.py").write_text(code, encoding="utf-8")
    for language in languages():
        for *_, words, _ in ENTRIES.values():
            for file, prefixes in words.items():
                sections = {f"{prefix}example": f"An example in {language}" for prefix in prefixes}
                add_words(tree, language, file, sections)


def add_chapter(tree: Path, name: str) -> None:
    for _, block in BLOCKS:
        first, _, rest = block.partition("\n")
        if path := re.fullmatch(r"(?:# |<!-- )([\w/.-]+)(?: -->)?", first):
            (tree / path[1]).parent.mkdir(exist_ok=True)
            (tree / path[1]).write_text(rest, encoding="utf-8")
    text, gallery, tests = tree / "assets" / "text", tree / "assets" / "gallery", tree / "tests" / "pages"
    shutil.copy(gallery / "heads.png", gallery / f"{name}.png")
    for language in languages():
        if language != "en":
            shutil.copy(text / "en" / f"{name}.md", text / language)
        add_words(tree, language, "home", {f"teaser.{name}": "Temperature", f"alt.{name}": "Bars"})
        wrong = "".join(f"- [ ] {answer}\n  > It scales.\n" for answer in ("Nothing", "It shifts"))
        question = f"**Temperature** What does it do?\n- [x] It scales\n{wrong}> The weights change."
        add_words(tree, language, "review", {f"{name}.{number}": question for number in (1, 2)})
    (tests / "softmax_temperature").mkdir()
    (tests / "softmax_temperature" / "test_page.py").write_text(OWN_TESTS, encoding="utf-8")


def add_language(tree: Path) -> None:
    text = tree / "assets" / "text"
    shutil.copytree(text / "en", text / "es")
    shutil.copy(text / "pt-BR" / "errors.md", text / "es")
    common = (text / "es" / "common.md").read_text(encoding="utf-8")
    common = re.sub(r"## language-name\n.*", "## language-name\nEspañol", common)
    (text / "es" / "common.md").write_text(common, encoding="utf-8")
