"""The linter of words: phrases in pages and documents, and everyday words in identifiers, that wording.toml lists."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest

from tests.english import prose as without_names
from tests.source_files import ROOT
from ui.text.missing import is_due
from ui.text.words import _read

RULES = tomllib.loads((ROOT / "tests" / "wording.toml").read_text("utf-8"))
LANGUAGES = [name for name in RULES if name not in ("identifiers", "terms")]
# Code, formulas, targets of links and marks of answers are no prose; words in TeX's \text{} are.
_NO_PROSE = re.compile(
    r"```.*?```|`[^`]*`|\$\$.*?\$\$|\$[^$]*\$|\]\([^)]*\)|:[\w-]+/\w+:|^- \[[^\]]*\]", re.DOTALL | re.MULTILINE
)
_EXEMPT = re.compile(r"^## (?:start|preset)\..*?(?=^## |\Z)|^## stem.*?(?=^## |\Z)", re.DOTALL | re.MULTILINE)
_COMMENT_OR_STRING = re.compile(r"//[^\n]*|/\*.*?\*/|\"(?:\\.|[^\"\\\n])*\"", re.DOTALL)


def prose(text: str, language: str) -> str:
    if language == "en":
        return text
    text = re.sub(r"^## .*$", "", _EXEMPT.sub("", text), flags=re.MULTILINE)
    return _NO_PROSE.sub("·", text) + "\n" + "\n".join(re.findall(r"\\text\{+([^{}]*)\}", text))


def findings(text: str, language: str) -> list[str]:
    rules = RULES[language].items()
    flags = re.IGNORECASE if language == "en" else 0
    return [f"{m[0]!r}: write {better!r}" for pattern, better in rules for m in re.finditer(pattern, text, flags)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_phrase_of_the_list_is_on_a_page(language: str) -> None:
    paths = [path for path in ROOT.glob(f"assets/text/{language}/*.md") if not is_due(_read(path.stem, language))]
    assert paths
    if language == "en":
        paths += [*ROOT.glob("docs/*.md"), ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    found = {path.name: findings(prose(path.read_text("utf-8"), language), language) for path in paths}
    assert {name: each for name, each in found.items() if each} == {}


@pytest.mark.parametrize("language", RULES["terms"])
def test_a_term_has_one_word_in_a_language(language: str) -> None:
    missing = []
    for path in ROOT.glob("assets/text/en/*.md"):
        english, other = (_read(path.stem, each) for each in ("en", language))
        texts = {} if is_due(other) else {name: without_names(text) for name, text in english.sections.items()}
        for term, word in RULES["terms"][language].items():
            english_term = re.compile(rf"(?<![\w-])(?:{term})(?![\w-])", re.IGNORECASE)
            using = [name for name, text in texts.items() if english_term.search(text) and name in other.sections]
            missing += [
                (path.stem, name, term) for name in using if not re.search(word, other.sections[name], re.IGNORECASE)
            ]
    assert missing == []


def identifiers(path: Path) -> set[str]:
    """Names that a file defines, and its own name; names of tests are sentences."""
    text, found = path.read_text("utf-8"), {path.stem}
    if path.suffix == ".js":
        found |= set(re.findall(r"\b(?:function|class|const|let)\s+([\w$]+)", _COMMENT_OR_STRING.sub("", text)))
    else:
        for node in ast.walk(ast.parse(text)):
            match node:
                case ast.FunctionDef(name=name) | ast.ClassDef(name=name) | ast.arg(arg=name):
                    found.add(name)
                case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                    found.add(name)
    return {name for name in found if not name.startswith("test_")}


def test_identifiers_use_standard_terms() -> None:
    forbidden = re.compile(rf"(?:^|_)(?:{'|'.join(RULES['identifiers']['words'])})(?:_|$)")
    allowed = RULES["identifiers"]["allowed"]
    folders = "viz_core attention_atlas recipes serving ui pages benchmarks tests assets/components".split()
    paths = [path for folder in folders for ending in ("py", "js") for path in (ROOT / folder).rglob(f"*.{ending}")]
    offenders = {}
    for path in paths:
        if "vendor" in path.parts:
            continue
        name = path.relative_to(ROOT).as_posix()
        snake = {each: re.sub(r"(?<=[a-z0-9])(?=[A-Z])|-", "_", each).lower() for each in identifiers(path)}
        found = {each for each, lower in snake.items() if forbidden.search(lower)} - set(allowed.get(name, ()))
        offenders |= {name: sorted(found)} if found else {}
    assert offenders == {}
