"""The names of words that code asks for, read from the code itself.

A name is a literal, or a pattern where a part is only known when the page runs: f"option.{kernel}" asks for `option.*`.
Names that come by a variable are followed to where it is assigned, looped over or passed in.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from viz_core.hub.kinds import KINDS

ANY = "*"
# What a method of Chapter or Controls makes of the name it is given.
SECTIONS = {
    "text": ["{}"],
    "heading": ["heading.{}"],
    "figure": ["alt.{}"],
    "heatmap": ["alt.{}", "cell.{}"],
    "claim": ["claim.{}"],
    "claim_at_most": ["claim.{}"],
    "claim_at_least": ["claim.{}"],
    "finding": ["finding.{}", "finding.{}-not"],
    "exercise": ["exercise.{}"],
    "draw_on_figure": ["exercise.{}"],
    "guidance": ["look.{}"],
    "source_card": ["book.{}"],
}
MAY_BE = {
    "claim": "unbroken.{}",
    "claim_at_most": "unbroken.{}",
    "claim_at_least": "unbroken.{}",
    "figure": "look.{}",
    "heatmap": "look.{}",
    "source_card": "erratum.{}",
}  # shown where there is one
CONTROLS = {"slider", "select_slider", "number", "choice", "select", "multiselect", "toggle", "text_area", "text"}


@dataclass(frozen=True)
class Name:
    """A name of a section ("section"), of sections that begin alike ("group") or of a control ("label")."""

    words: str | None  # whose file; None for that of any chapter
    kind: str
    pattern: str
    place: str
    must_be: bool = True

    def finds(self, sections: Iterable[str]) -> bool:
        """Whether there is anything of this name."""
        wanted = f"{self.pattern}.{ANY}" if self.kind == "group" else self.pattern
        return any(True for name in sections for _ in _fillings(wanted, name))

    def covers(self, name: str, code_strings: CodeStrings) -> bool:
        """Whether this may be the one who asks for `name`; what fills a star must stand somewhere in code."""
        if self.kind == "group":
            return name.startswith(f"{self.pattern}.") and code_strings.names(name.removeprefix(f"{self.pattern}."))
        return any(all(map(code_strings.names, parts)) for parts in _fillings(self.pattern, name))


@dataclass(frozen=True)
class CodeStrings:
    """The strings and keywords of code as they are, and its strings with parts that are filled in."""

    whole: frozenset[str]
    patterns: frozenset[str]

    @cache  # noqa: B019  a handful of these in a run
    def names(self, name: str) -> bool:
        """Whether some code can have written this."""
        if name in self.whole:
            return True
        found = (parts for pattern in self.patterns for parts in _fillings(pattern, name))
        return any(self.whole.issuperset(parts) for parts in found)


@dataclass
class Code:
    """Files that share functions, and whose words `chapter.words` are."""

    files: list[Path]
    own: str | None
    calls: dict[str, list[tuple[ast.Call, ast.AST]]] = field(default_factory=dict)
    _readers: set[str] = field(default_factory=set)
    _above: dict[ast.AST, ast.AST] = field(default_factory=dict)
    trees: dict[Path, ast.Module] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for path in self.files:
            tree = self.trees[path] = ast.parse(path.read_text(encoding="utf-8"))
            for node in ast.walk(tree):
                for child in ast.iter_child_nodes(node):
                    self._above[child] = node
                if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and self._is_words(node.value):
                    self._readers |= {target.id for target in node.targets if isinstance(target, ast.Name)}
                if isinstance(node, ast.Call):
                    self.calls.setdefault(_last(node.func), []).append((node, tree))

    def names(self) -> Iterator[Name]:
        """Every name of words these files ask for."""
        for path, tree in self.trees.items():
            for node in ast.walk(tree):
                if isinstance(node, ast.Call):
                    for words, kind, pattern, must_be in self._names_in(node):
                        yield Name(words, kind, pattern, f"{path.name}:{node.lineno}", must_be)

    def _names_in(self, call: ast.Call) -> Iterator[tuple[str | None, str, str, bool]]:
        method = _last(call.func)
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        if owner is not None and _last(owner) in ("controls", "self.controls") and method in CONTROLS:
            yield from ((self.own, "label", name, True) for name in self._first(call))
        elif owner is not None and _last(owner) == "chapter" and method == "tabs":
            yield from ((self.own, "section", f"option.{keyword.arg}", True) for keyword in call.keywords)
        elif owner is not None and _last(owner) == "chapter" and method == "sources":
            for name in (name for element in self._elements(call.args[0]) for name in self.patterns(element)):
                yield self.own, "section", f"book.{name}", True
                yield self.own, "section", f"erratum.{name}", False
        elif owner is not None and _last(owner) == "chapter" and method in ("break_it", "break_and_explain"):
            yield self.own, "label", "break", True
            yield self.own, "section", "option.nothing", True
            for name in (name for argument in call.args for name in self.patterns(argument)):
                yield from ((self.own, "section", made, True) for made in (f"option.{name}", f"break.{name}"))
        elif owner is not None and ast.unparse(owner) in ("chapter", "home") and method in SECTIONS:
            for name in self._first(call):
                yield from ((self.own, "section", made.format(name), True) for made in SECTIONS[method])
                if method in MAY_BE:
                    yield self.own, "section", MAY_BE[method].format(name), False
        elif method in ("group", "label", "has", "prose") and owner is not None and self._is_words(owner):
            kind = {"group": "group", "label": "label", "has": "section", "prose": "section"}[method]
            yield from ((self._whose(owner), kind, name, method != "has") for name in self._first(call))
        elif self._is_words(call.func):
            yield from ((self._whose(call.func), "section", name, True) for name in self._first(call))

    def _is_words(self, node: ast.expr) -> bool:
        if isinstance(node, ast.Call):
            return _last(node.func) == "load_words"
        return _last(node) in ("words", "common") or (isinstance(node, ast.Name) and node.id in self._readers)

    def _whose(self, node: ast.expr) -> str | None:
        if isinstance(node, ast.Call):  # load_words("common")
            first = node.args[0]
            return str(first.value) if isinstance(first, ast.Constant) else self.own
        if isinstance(node, ast.Attribute):
            return "common" if node.attr == "common" else self.own
        for value in self._values(node) if isinstance(node, ast.Name) else []:
            if value is not node and self._is_words(value):
                return self._whose(value)
        return "common" if _last(node) == "common" else self.own

    def _first(self, call: ast.Call) -> list[str]:
        return self.patterns(call.args[0]) if call.args else []

    def patterns(self, node: ast.expr, depth: int = 0) -> list[str]:
        """What a name can be: literals, with a star for what only the running page knows."""
        if isinstance(node, ast.Constant):
            return [str(node.value)] if isinstance(node.value, str) else []
        if isinstance(node, ast.IfExp):
            return [*self.patterns(node.body, depth), *self.patterns(node.orelse, depth)]
        if isinstance(node, ast.JoinedStr):
            found = [""]
            for part in node.values:
                ends = [ANY]
                if isinstance(part, ast.Constant):
                    ends = [str(part.value)]
                elif isinstance(part, ast.FormattedValue):
                    ends = self.patterns(part.value, depth)
                found = [start + end for start in found for end in ends]
            return found
        if (
            isinstance(node, ast.Attribute) and ast.unparse(node.value) == "control"
        ):  # of the lab: a kind's InputControl
            controls = (
                each for kind in KINDS.values() for each in kind.controls if each.widget not in ("picture", "sound")
            )
            return sorted({getattr(each, node.attr) for each in controls} - {""})
        if isinstance(node, ast.Name) and depth < 4:
            values = [value for value in self._values(node) if value is not node]
            if values:
                return sorted({name for value in values for name in self.patterns(value, depth + 1)})
        return [ANY]

    def _values(self, name: ast.Name) -> list[ast.expr]:
        """The expressions a variable may stand for, where they can be read."""
        node: ast.AST = name
        ruled_out: set[object] = set()
        while node in self._above:
            below, node = node, self._above[node]
            found: list[ast.expr] = []
            if isinstance(node, ast.If) and (literal := _compared(node.test, name.id)):
                if below in node.body:
                    return [literal]
                ruled_out.add(literal.value)
            elif isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp):
                found = [v for loop in node.generators for v in self._looped(loop.target, loop.iter, name.id)]
            elif isinstance(node, ast.For):
                found = self._looped(node.target, node.iter, name.id)
            elif isinstance(node, ast.FunctionDef):
                found = self._assigned(node, name.id) or self._passed(node, name.id)
            elif isinstance(node, ast.Module):
                found = self._assigned(node, name.id)
            if found:
                return [v for v in found if not (isinstance(v, ast.Constant) and v.value in ruled_out)]
        return []

    def _assigned(self, scope: ast.AST, name: str) -> list[ast.expr]:
        found = []
        inside = scope.body if isinstance(scope, ast.Module) else ast.walk(scope)
        for node in inside:
            if isinstance(node, ast.Assign):
                for target in node.targets:
                    if isinstance(target, ast.Name) and target.id == name:
                        found.append(node.value)
                    elif isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                        pairs = zip(target.elts, node.value.elts, strict=False)
                        found += [v for t, v in pairs if isinstance(t, ast.Name) and t.id == name]
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id == name:
                found += [node.value] if node.value else []
            elif isinstance(node, ast.For):
                found += self._looped(node.target, node.iter, name)
        return found

    def _looped(self, target: ast.expr, over: ast.expr, name: str) -> list[ast.expr]:
        """What `name` stands for in `for target in over`."""
        if isinstance(target, ast.Name):
            return self._elements(over) if target.id == name else []
        if not isinstance(target, ast.Tuple):
            return []
        for place, part in enumerate(target.elts):
            if not any(isinstance(node, ast.Name) and node.id == name for node in ast.walk(part)):
                continue
            if isinstance(over, ast.Call) and _last(over.func) == "zip":
                return self._looped(part, over.args[place], name)
            if isinstance(over, ast.Call) and _last(over.func) == "enumerate":
                return self._looped(part, over.args[0], name) if place == 1 else []
            if isinstance(over, ast.Call) and _last(over.func) == "items":
                owner = over.func.value if isinstance(over.func, ast.Attribute) else over
                return self._elements(owner) if place == 0 else []
            rows = [row for row in self._elements(over) if isinstance(row, ast.Tuple) and len(row.elts) > place]
            return [row.elts[place] for row in rows]
        return []

    def _elements(self, over: ast.expr) -> list[ast.expr]:
        """The elements of a literal tuple, list or set, and the keys of a literal dictionary."""
        if isinstance(over, ast.Name):
            return [element for value in self._values(over) if value is not over for element in self._elements(value)]
        if isinstance(over, ast.Tuple | ast.List | ast.Set):
            return over.elts
        if isinstance(over, ast.Dict):
            return [key for key in over.keys if key is not None]
        if isinstance(over, ast.Call) and _last(over.func) in ("sorted", "reversed", "list", "tuple") and over.args:
            return self._elements(over.args[0])
        return []

    def _passed(self, function: ast.FunctionDef, name: str) -> list[ast.expr]:
        """What callers in these files pass for a parameter."""
        places = [argument.arg for argument in function.args.args]
        if name not in places + [argument.arg for argument in function.args.kwonlyargs]:
            return []
        found = []
        for call, _ in self.calls.get(function.name, []):
            by_name = [keyword.value for keyword in call.keywords if keyword.arg == name]
            by_place = call.args[places.index(name) :][:1] if name in places else []
            found += by_name or by_place
        return found


def code_strings(python: Iterable[Path], scripts: Iterable[Path], data: Iterable[Path]) -> CodeStrings:
    """What Python files, browser scripts and data files say."""
    whole: set[str] = set()
    patterns: set[str] = set()
    for path in python:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str | int | float):
                whole.add(str(node.value))
            elif isinstance(node, ast.keyword) and node.arg:
                whole.add(node.arg)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):  # a field
                whole.add(node.target.id)
            elif isinstance(node, ast.JoinedStr):
                pattern = "".join(str(p.value) if isinstance(p, ast.Constant) else ANY for p in node.values)
                patterns |= {pattern} if len(pattern.replace(ANY, "")) > 3 else set()  # a dash could be anything
    for path in scripts:
        text = path.read_text(encoding="utf-8")
        whole |= {found for pair in re.findall(r"""["']([\w.-]+)["']|\.(\w+)""", text) for found in pair}
        patterns |= {re.sub(r"\$\{[^}]*\}", ANY, found) for found in re.findall(r"`([^`\n]*)`", text)}
    for path in data:
        whole |= set(re.findall(r'"([^"\n]+)"', path.read_text(encoding="utf-8")))
    return CodeStrings(frozenset(whole), frozenset(patterns - {ANY, ANY * 2}))


def labels_taken(files: list[Path]) -> Iterator[tuple[str, str]]:
    """(place, label) for each `labels["axis"]`: what figures take from the group of words they are handed."""
    code = Code(files, None)
    for path, tree in code.trees.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Subscript) and _last(node.value) in ("labels", "names", "words"):
                yield from ((f"{path.name}:{node.lineno}", label) for label in code.patterns(node.slice))


def _fillings(pattern: str, name: str) -> Iterator[tuple[str, ...]]:
    """What may fill the stars of a pattern, read from either end; nothing where it is another name."""
    if ANY not in pattern:
        yield from [()] if pattern == name else []
        return
    for read in _expressions(pattern):
        if found := read.fullmatch(name):
            yield found.groups()


@cache
def _expressions(pattern: str) -> tuple[re.Pattern[str], ...]:
    return tuple(re.compile(star.join(map(re.escape, pattern.split(ANY)))) for star in ("(.+?)", "(.+)"))


def _compared(test: ast.expr, name: str) -> ast.Constant | None:
    """The constant in `name == constant`."""
    if isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == name:
        to = test.comparators[0]
        return to if isinstance(test.ops[0], ast.Eq) and isinstance(to, ast.Constant) else None
    return None


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
