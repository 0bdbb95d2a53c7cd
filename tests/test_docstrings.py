"""The library tells of itself, and pages and identifiers avoid the words that wording.toml lists."""

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias

import pytest

from tests.source_files import ROOT, sources, tree
from tests.source_files import prose as without_names
from ui.text.missing import is_due
from ui.text.words import _read

Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef


class Public(NamedTuple):
    """A class or function of the library, and the class it belongs to."""

    place: str
    node: ast.ClassDef | Function
    owner: ast.ClassDef | None

    def says(self) -> str:
        """Its docstring; what is raised as a class is made may stand in the class's."""
        own = ast.get_docstring(self.node) or ""
        made = self.owner is not None and self.node.name in ("__init__", "__post_init__")
        return own + (ast.get_docstring(self.owner) or "" if self.owner and made else "")


def sets_a_property(node: Function) -> bool:
    return any(ast.unparse(each).endswith(".setter") for each in node.decorator_list)


def public() -> Iterator[Public]:
    for path in sources("viz_core"):
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef | Function) and not node.name.startswith("_"):
                place = f"{path.relative_to(ROOT)}: {node.name}"
                yield Public(place, node, None)
                for inner in node.body if isinstance(node, ast.ClassDef) else ():
                    if not isinstance(inner, Function) or sets_a_property(inner):  # a property's getter says what it is
                        continue
                    if inner.name.startswith("__") or inner.name[0] != "_":
                        yield Public(f"{place}.{inner.name}", inner, node)


EVERYTHING = list(public())

# Packages whose functions take arguments from outside this project.
PUBLIC_EDGE = ("attention", "positional", "models", "maps", "trace", "pretrained", "images", "sounds")

# Checks of what a signature says already: a type, a shape, the width of a layer's input. No docstring repeats it.
OF_THE_SIGNATURE = {
    *("check_tensors", "check_axes", "check_device", "check_integers", "check_like"),
    *("check_width", "check_features", "check_tokens", "check_queries"),
}


CLASSES = [each.node for each in EVERYTHING if isinstance(each.node, ast.ClassDef)]


def is_inherited(each: Public) -> bool:
    """Whether a base class documents a method of this name."""
    bases = [ast.unparse(base).split("[")[0].split(".")[-1] for base in each.owner.bases] if each.owner else []
    owners = [node for node in CLASSES if node.name in bases]
    documented = {inner.name for base in owners for inner in base.body if isinstance(inner, Function)}
    return each.node.name in documented or any(is_inherited(Public(each.place, each.node, base)) for base in owners)


def is_public_edge(each: Public) -> bool:
    return each.place.removeprefix("viz_core/").startswith(PUBLIC_EDGE)


def own(node: ast.AST) -> Iterator[ast.AST]:
    """A function's own statements and expressions, not those of functions within it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, Function | ast.Lambda | ast.ClassDef):
            yield child
            yield from own(child)


def raised(node: ast.AST) -> set[str]:
    """The exceptions that a function raises by its own hand; "an error" where it calls a check of more than a type."""
    found: set[str] = set()
    for inner in own(node):
        if isinstance(inner, ast.Raise) and isinstance(inner.exc, ast.Call):
            name = ast.unparse(inner.exc.func).split(".")[-1]
            found.add(name if name[0].isupper() else "an error")  # else a function that makes one
        elif isinstance(inner, ast.Call):
            name = ast.unparse(inner.func).split(".")[-1]
            if name.startswith(("check_", "_check")) and name not in OF_THE_SIGNATURE:
                found.add("an error")
    return found - {"NotImplementedError"}  # a method that is each subclass's own


def test_everything_public_has_a_docstring() -> None:
    assert len(EVERYTHING) > 500
    bare = [
        each.place
        for each in EVERYTHING
        if not each.node.name.startswith("_")
        and not (ast.get_docstring(each.node) or "").strip()
        and "overload" not in map(ast.unparse, each.node.decorator_list)
        and not is_inherited(each)
    ]
    assert bare == []


def test_what_raises_says_so_and_names_it() -> None:
    silent, wrong = [], []
    for each in EVERYTHING:
        kinds, says = raised(each.node) if isinstance(each.node, Function) else set(), each.says()
        if kinds and is_public_edge(each) and "Error" not in says:
            silent.append(f"{each.place} raises {', '.join(sorted(kinds))}")
        if "Raises:" in says:
            named = says.split("Raises:", 1)[1]
            wrong += [f"{each.place} raises {kind}" for kind in kinds - {"an error"} if f"{kind}:" not in named]
    assert (silent, wrong) == ([], [])


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


@pytest.mark.parametrize(("place", "language"), [(0, "pt-BR"), (1, "zh-TW")])
def test_a_term_has_one_word_in_a_language(place: int, language: str) -> None:
    missing = []
    for path in ROOT.glob("assets/text/en/*.md"):
        english, other = (_read(path.stem, each) for each in ("en", language))
        texts = {} if is_due(other) else {name: without_names(text) for name, text in english.sections.items()}
        for term, words in RULES["terms"].items():
            english_term = re.compile(rf"(?<![\w-])(?:{term})(?![\w-])", re.IGNORECASE)
            using = [name for name, text in texts.items() if english_term.search(text) and name in other.sections]
            word = re.compile(words[place], re.IGNORECASE)
            missing += [(path.stem, name, term) for name in using if not word.search(other.sections[name])]
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
