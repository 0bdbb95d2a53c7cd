"""The worked examples of CONTRIBUTING.md: each is added to a copy of the tree, whose contract tests then run."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults import copy_tree
from tests.source_files import ROOT
from ui.text.words import languages

GUIDE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^ *```(\w+)\n(.*?)^ *```", GUIDE, re.MULTILINE | re.DOTALL)
REGISTER_WORDS = "tests/test_words.py::test_entries_of_registers_have_their_words"
# Example, its file, what is renamed in a copy of it, its words by file, the tests of the register, and its name there.
ENTRIES = {
    "scheme": (
        "viz_core/positional/kerple.py",
        {'"kerple"': '"example"', "order=10": "order=99", "seed=9": "seed=990", "KERPLE": "EXAMPLE"},
        {"position-embeddings": ("about.", "formula.", "extends."), "shared": ("option.",)},
        "tests/viz_core/positional/test_register.py",
    ),
    "score": (
        "viz_core/attention/scores/cosine.py",
        {'"cosine"': '"example"', "order=4": "order=99", "COSINE": "EXAMPLE"},
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


def run(tree: Path, *arguments: str) -> None:
    done = subprocess.run([sys.executable, *arguments], cwd=tree, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]


def contract_tests(tree: Path, *arguments: str) -> None:
    run(tree, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *arguments)


@pytest.mark.parametrize("example", ENTRIES)
def test_the_code_of_an_entry_is_in_its_file(example: str) -> None:
    """Without the comments that the file has at the ends of lines and between them."""
    code = (ROOT / ENTRIES[example][0]).read_text(encoding="utf-8")
    plain = re.sub(r"^ *#.*\n|  #.*$", "", code, flags=re.MULTILINE)
    assert any(block in plain for _, block in BLOCKS)


def test_entries_of_registers_are_added(tmp_path: Path) -> None:
    copy_tree(tmp_path)
    for source, renamed, *_ in ENTRIES.values():
        code = (tmp_path / source).read_text(encoding="utf-8")
        for old, new in renamed.items():
            assert old in code
            code = code.replace(old, new)
        (tmp_path / source).with_name("example.py").write_text(code, encoding="utf-8")
    with pytest.raises(AssertionError, match="example"):
        contract_tests(tmp_path, REGISTER_WORDS)
    for language in languages():
        for *_, words, _ in ENTRIES.values():
            for file, prefixes in words.items():
                sections = {f"{prefix}example": f"An example in {language}" for prefix in prefixes}
                add_words(tmp_path, language, file, sections)
    tests = [tests for *_, tests in ENTRIES.values()]
    contract_tests(tmp_path, REGISTER_WORDS, *tests, "-k", "example or words")


def test_a_chapter_is_added(tmp_path: Path) -> None:
    name = "softmax-temperature"
    copy_tree(tmp_path)
    for _, block in BLOCKS:
        first, _, rest = block.partition("\n")
        if path := re.fullmatch(r"(?:# |<!-- )([\w/.-]+)(?: -->)?", first):
            (tmp_path / path[1]).parent.mkdir(exist_ok=True)
            (tmp_path / path[1]).write_text(rest, encoding="utf-8")
    text = tmp_path / "assets" / "text"
    gallery = tmp_path / "assets" / "gallery"
    shutil.copy(gallery / "heads.png", gallery / f"{name}.png")
    for language in languages():
        if language != "en":
            shutil.copy(text / "en" / f"{name}.md", text / language)
        add_words(tmp_path, language, "home", {f"teaser.{name}": "Temperature", f"alt.{name}": "Bars"})
        wrong = "".join(f"- [ ] {answer}\n  > It scales.\n" for answer in ("Nothing", "It shifts"))
        question = f"**Temperature** What does it do?\n- [x] It scales\n{wrong}> The weights change."
        add_words(tmp_path, language, "review", {f"{name}.{number}": question for number in (1, 2)})
    tests = tmp_path / "tests" / "pages" / "softmax_temperature"
    tests.mkdir()
    (tests / "test_page.py").write_text(
        "from tests.pages.reading import badges\n\n\n"
        "def test_it_opens(open_page):\n"
        "    app = open_page('softmax-temperature', **{'st-temperature': '2'})\n"
        "    assert not app.error\n    assert all(badges(app).values())\n",
        encoding="utf-8",
    )
    recorded = (
        "from static_site.recorded_pages import record_chapter\nfrom ui.chapter.contents import chapter_entries\n"
        f"assert record_chapter('{name}', chapter_entries()['{name}'].site, 'en').shown == [['0.5', '1.0', '2.0']]"
    )
    run(tmp_path, "-c", recorded)
    whole = ("tests/pages/softmax_temperature", "tests/ui/test_contents.py", "tests/test_structure.py")
    contract_tests(tmp_path, *whole, "tests/pages/test_contract.py", "-k", f"{name} or not test_contract")


def test_a_language_is_added(tmp_path: Path) -> None:
    copy_tree(tmp_path)
    text = tmp_path / "assets" / "text"
    shutil.copytree(text / "en", text / "es")
    shutil.copy(text / "pt-BR" / "errors.md", text / "es")
    common = (text / "es" / "common.md").read_text(encoding="utf-8")
    common = re.sub(r"## language-name\n.*", "## language-name\nEspañol", common)
    (text / "es" / "common.md").write_text(common, encoding="utf-8")
    missing = subprocess.run(
        [sys.executable, "-m", "ui.text.missing", "es"], cwd=tmp_path, capture_output=True, text=True
    )
    lines = missing.stdout.splitlines()
    assert lines
    assert all(line.endswith("is still in English") for line in lines), lines
    (tmp_path / "tests" / "pages" / "test_spanish.py").write_text(
        "def test_it_opens(open_page):\n"
        "    app = open_page('linear-attention', lang='es')\n"
        "    assert not app.error\n"
        "    assert 'Español' in app.sidebar.selectbox[0].options\n",
        encoding="utf-8",
    )
    contract_tests(
        tmp_path, "tests/pages/test_spanish.py", "tests/test_words.py", "-k", "opens or plural or stands_twice"
    )
    run(tmp_path, "-c", "from static_site.pages import LANGUAGES; assert 'es' in LANGUAGES")
