"""The sources of the house, and the English of its texts, for tests that read them."""

import ast
import functools
import importlib.util
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]

# What each package may import (DESIGN.md, section 2, rule 1).
PACKAGES = {
    "viz_core": set[str](),
    "attention_atlas": {"viz_core"},
    "recipes": {"viz_core"},
    "serving": {"viz_core"},
    "static_site": {"ui", "viz_core"},  # it runs the app to record it
    "ui": {"serving", "viz_core"},
    "pages": {"serving", "ui", "viz_core"},
}


def sources(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


@functools.cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


@functools.cache
def script(path: Path) -> ModuleType:
    """Import a file that belongs to no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


@functools.cache
def imports(path: Path) -> tuple[str, ...]:
    """Every module a file imports, at the top or within a function, by its full name."""
    return tuple(_imports(path))


def _imports(path: Path) -> Iterator[str]:
    package = list(path.relative_to(ROOT).parts[:-1])
    for node in ast.walk(tree(path)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def offenders(folder: str, *forbidden: str) -> list[str]:
    return [
        f"{path.relative_to(ROOT)} imports {name}"
        for path in sources(folder)
        for name in imports(path)
        if any(name == package or name.startswith(f"{package}.") for package in forbidden)
    ]


# Code, formulas, targets of links, marks of predictions, tags, icons, names of files and of models, quotations, and
# tokens with the mark of a space.
_NO_PROSE = re.compile(
    r"```.*?```|`[^`]*`|\$\$.*?\$\$|\$.*?\$|\]\([^)]*\)|^- \[[^\]]*\]|\{[^{}]*\}|<[^>]*>|:[\w-]+/\w+:|:[\w-]+\[|"
    r"https?://\S+|www\.\S+|\b[\w./-]+\.(?:json|txt|md|org)\b|\b\w+-en(?:-fr)?\b|[“\"][^”\"]*[”\"]|「[A-Za-z][^」]*」|\*[A-Za-z][^*]*\*|·[A-Za-z]+",
    re.DOTALL | re.MULTILINE,
)
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
# Not "1.024", a thousand, nor a head's or a model's name; nor a section of the book or a licence, which are left out.
_POINT = re.compile(r"(?<![\w.,/-])(?!(?:[1-9]\d{0,2}(?:\.\d{3})+)(?!\d))\d+\.\d+(?![.\w])")
_NUMBERED = re.compile(r"\((?:\w+ )?1[01]\.\d[\d.]*|CC BY \d\.\d|\bseç(?:ão|ões) \d+\.\d+(?:\.\d+)?")

# Words without which hardly an English sentence is made, and none of them a Portuguese word.
_OF_GRAMMAR = frozenset(
    "the of and is are was were be been with from this that these those which what where when how why who by to on at "
    "into onto over under between within without through its it they their them there here than then not cannot have "
    "has had can could would should will shall may might must each every all both other others another such only also "
    "more most less least fewer same own very too even still already yet ever never always often again".split()
)
# Names and titles that have such words in them.
_NAMES = (
    "Listen, Attend and Spell",
    "squeeze and excitation",
    "Wang and Chen",
    "Abnar and Zuidema",
    "CC BY",
    "all-MiniLM",
    "Learn to code",
    "Dive into",
)


def prose(text: str) -> str:
    """The text without what stands in every language as it is."""
    for name in _NAMES:
        text = text.replace(name, " ")
    return _NO_PROSE.sub(" · ", text)


def grammar_words(text: str) -> list[str]:
    """Words of English grammar in the prose of a text."""
    return [word for word in _WORD.findall(prose(text)) if word.lower() in _OF_GRAMMAR]


def decimal_points(text: str) -> list[str]:
    """Numbers in the prose of a text that have a point before their decimals, where a language has a comma."""
    return _POINT.findall(prose(_NUMBERED.sub(" ", text)))
