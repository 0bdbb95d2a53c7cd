"""The files of words: every language has what English has, nothing stands twice, and registers have their words."""

import re
import shutil
from pathlib import Path

import pytest

import ui.text.words
from tests.source_files import grammar_words
from ui.text.missing import is_due, missing
from ui.text.model_card import licence_of
from ui.text.translations import load_terms
from ui.text.words import ENGLISH, SHARED, TEXT, Words, languages, load_words
from viz_core.attention.scores import FUNCTIONS
from viz_core.hub.kinds import KINDS
from viz_core.maps.register import MEASURES
from viz_core.positional import SCHEMES
from viz_core.pretrained import available
from viz_core.view.components import WORD_NAMES

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted(path.stem for path in (TEXT / ENGLISH).glob("*.md"))
OTHERS = [name for name in languages() if name != ENGLISH]
VIEW = "attention-view"
BUDGET = 32_800
"""Words of all pages in English, with their front matter and signs, without the names of sections."""

all_languages = pytest.mark.parametrize("language", languages())
translations = pytest.mark.parametrize("language", OTHERS)


def texts(file: str, language: str) -> dict[str, str]:
    """Sections and labels by name."""
    words = ui.text.words._read(file, language)
    return words.sections | {f"label {name}": str(label) for name, label in words.front.get("controls", {}).items()}


@translations
def test_a_language_has_what_english_has(language: str) -> None:
    due = tuple(f"{file}.md" for file in FILES if is_due(ui.text.words._read(file, language)))
    assert [fault for fault in missing(language) if not fault.startswith(due)] == []


@pytest.fixture
def spanish(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the English folder, as a translator begins."""
    for source, name in ((ENGLISH, ENGLISH), ("zh-TW", "zh-TW"), (ENGLISH, "es")):
        shutil.copytree(TEXT / source, tmp_path / name)
    (tmp_path / "es" / "errors.md").write_text("---\ntitle: x\n---\n", encoding="utf-8")
    monkeypatch.setattr(ui.text.words, "TEXT", tmp_path)
    return tmp_path / "es"


def test_what_a_language_lacks_is_named(spanish: Path) -> None:
    for file, old, new in (
        ("home.md", "## question", "## pregunta"),
        ("common.md", "{seconds}", "{segundos}"),
        ("transformer.md", "- [x]", "- [ ]"),
        ("terms.csv", "\npatch,", "\nparche,"),
    ):
        text = (spanish / file).read_text(encoding="utf-8")
        assert old in text
        (spanish / file).write_text(text.replace(old, new), encoding="utf-8")
    (spanish / "tour.md").unlink()
    faults = set(missing("es"))
    assert {
        "home.md: no section question",
        "home.md: section pregunta does not exist in English",
        "common.md: section at-work has other placeholders than in English",
        "multi-head.md: section question is still in English",
        "tour.md: the file is missing or empty",
        "terms.csv: no term patch",
    } <= faults
    assert any(re.match("transformer.md: section exercise.* has other links", fault) for fault in faults)
    assert any(fault.startswith("errors.md: no section") for fault in faults)
    assert list(missing("xx")) == ["there is no folder assets/text/xx; there are en, es, zh-TW"]


@all_languages
def test_no_section_no_label_and_no_term_stands_twice(language: str) -> None:
    """The later one would be what both places show."""
    for path in sorted((TEXT / language).glob("*.md")):
        front, _, body = path.read_text(encoding="utf-8").removeprefix("---").partition("\n---\n")
        found = [*re.findall(r"^ *[\w-]+:", front, re.MULTILINE), *re.findall(r"^## .*", body, re.MULTILINE)]
        assert sorted(found) == sorted(set(found)), path.name
    forms = [form.casefold() for forms in load_terms(language).values() for form in forms]
    assert len(forms) == len(set(forms))


@all_languages
def test_plural_forms_have_their_number(language: str) -> None:
    """Two forms where a language has two, one and other; none in Chinese, which has one."""
    for file in FILES:
        for name, text in ui.text.words._read(file, language).sections.items():
            for key, forms in re.findall(r"\{([\w-]+):([^{}|]*\|[^{}]*)\}", text):
                assert language != "zh-TW", name
                assert f"{{{key}}}" in text, name
                assert len(forms.split("|")) == 2, name


@all_languages
def test_entries_of_registers_have_their_words(language: str) -> None:
    names = {
        VIEW: [*WORD_NAMES, "bad_link", *(f"{part}_{name}" for name in MEASURES for part in ("measure", "about"))],
        "model-lab": [f"kind.{kind}" for kind in KINDS],
        "position-embeddings": [
            f"{part}.{scheme.name}" for scheme in SCHEMES for part in ("option", "about", "formula", "extends")
        ],
        "learning": [f"option.{scheme.task_name}" for scheme in SCHEMES if scheme.task_name],
        "scoring-functions": [f"{part}.{function.name}" for function in FUNCTIONS for part in ("option", "formula")],
    }
    words = {file: load_words(file, language) for file in names}
    assert [(file, name) for file in names for name in names[file] if not words[file].has(name)] == []
    view, lab = words[VIEW], words["model-lab"]
    both = [name for name in MEASURES if lab.has(f"option.{name}")]
    assert {name: lab(f"option.{name}") for name in both} == {name: view(f"measure_{name}") for name in both}


def test_models_have_their_names_in_english_words() -> None:
    """What a model's card says and what the words say is the same."""
    common = ui.text.words._read("common", ENGLISH)
    for card in available():
        assert common(f"model-title.{card.name}") == card.title
        assert licence_of(card.name, card.licence) == card.licence


def test_the_pages_keep_to_their_budget_of_words() -> None:
    files = (path.read_text(encoding="utf-8") for path in (TEXT / ENGLISH).glob("*.md"))
    lines = (line for text in files for line in text.splitlines() if not line.startswith("#"))
    assert sum(len(line.split()) for line in lines) <= BUDGET


def test_only_given_keys_are_filled_so_formulas_keep_their_braces() -> None:
    words = Words("x", {}, {"a": r"{count} of \frac{a}{b}, {with-first}"})
    assert words("a", count=3, **{"with-first": "{count}"}) == r"3 of \frac{a}{b}, {count}"


def test_another_language_falls_back_to_english(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for language, text in (("en", "# \n## a\nEnglish a\n## b\nEnglish b"), ("pt", "## a\nPortuguês a")):
        (tmp_path / language).mkdir()
        (tmp_path / language / "x.md").write_text(f"---\ntitle: {language}\n---\n{text}", encoding="utf-8")
        for_all = f"---\ntitle: {language}\n---\n## b\nshared\n## option.c\nc in {language}"
        (tmp_path / language / f"{SHARED}.md").write_text(for_all, encoding="utf-8")
    monkeypatch.setattr("ui.text.words.TEXT", tmp_path)
    words = load_words("x", "pt")
    assert (words.title, words("a"), words("b")) == ("pt", "Português a", "English b")
    assert words("option.c") == "c in pt" == words.group("option")["c"]
    assert words.has("option.c")
    assert "option.c" not in words.sections
    assert load_words("x", ENGLISH)("option.c") == "c in en"


@translations
def test_no_english_sentence_is_left(language: str) -> None:
    found = {
        (file, name): grammar_words(text)
        for file in FILES
        for name, text in texts(file, language).items()
        if not name.startswith(("start.", "preset.", "stem"))  # for models, which read English; names of files
    }
    assert {place: words for place, words in found.items() if words} == {}


@translations
def test_a_readme_says_the_same_in_every_language(language: str) -> None:
    """The same chapters, commands and code in the same order; settings stand in the English one alone."""
    english, other = ((ROOT / name).read_text(encoding="utf-8") for name in ("README.md", f"README.{language}.md"))
    assert len(re.findall("^## ", other, re.MULTILINE)) == len(re.findall("^## ", english, re.MULTILINE))
    assert _commands(other) == _commands(english)


def _commands(readme: str) -> list[str]:
    """The first word of each line of its listings, without what comments say."""
    listings = re.findall(r"^```\w*\n(.*?)^```", readme, re.DOTALL | re.MULTILINE)
    lines = (line.partition("#")[0].split() for listing in listings for line in listing.splitlines())
    return [words[0] for words in lines if words]
