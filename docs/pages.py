"""Pages of the documentation site that are written when it is built: the reference, and files of the project's root."""

import ast
import os
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

ROOT = Path(__file__).resolve().parents[1]
# Packages whose names are public: each lists them in __all__.
PACKAGES = (
    *("", ".trace", ".attention", ".attention.scores", ".attention.linear", ".positional", ".models", ".maps"),
    *(".circuits", ".hub", ".pretrained", ".tasks"),
)
_COURSE_ADDRESS = "http://localhost:8501"  # of the app, in docs/teach
_FROM_ROOT = {"index.md": "README.md", "contributing.md": "CONTRIBUTING.md", "changelog.md": "CHANGELOG.md"}


def public_names(package: str) -> list[str]:
    """The names that a package lists in its `__all__`, in its order."""
    tree = ast.parse(_source(package).read_text("utf-8"))
    lists = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and [ast.unparse(each) for each in node.targets] == ["__all__"]
    ]
    return [str(ast.literal_eval(each)) for each in lists[0].elts] if lists and isinstance(lists[0], ast.List) else []


def chapters_of_names() -> Mapping[str, Sequence[str]]:
    """The chapters that show the code of a name of the library, by the name."""
    chapters: dict[str, list[str]] = defaultdict(list)
    for page in sorted(ROOT.glob("pages/*/page.py")):
        for name in _names(page, lambda node: isinstance(node, ast.Call) and ast.unparse(node.func) == "chapter.code"):
            chapters[name].append(page.parent.name.replace("_", "-"))
    for scheme in sorted(ROOT.glob("viz_core/positional/*.py")):  # each lists its code beside its formula
        for name in _names(scheme, lambda node: isinstance(node, ast.keyword) and node.arg == "code"):
            chapters[name] += chapters["SCHEMES"]
    return chapters


def on_files(files: Files, config: Any) -> Files:
    """Add what does not lie in docs/: the reference, files of the root, model cards and pictures."""
    links = {name: _chapter_links(found, config["extra"]["app"]) for name, found in chapters_of_names().items()}
    for package in PACKAGES:
        files.append(File.generated(config, f"reference/{_page(package)}", content=_reference(package, links)))
    for name, source in _FROM_ROOT.items():
        files.append(File.generated(config, name, content=(ROOT / source).read_text("utf-8")))
    for card in sorted(_cards()):
        text = re.sub(r"\A---\n.*?^---\n", "", card.read_text("utf-8"), flags=re.DOTALL | re.MULTILINE)
        files.append(File.generated(config, _card_page(card), content=text))
    for picture in ("assets/readme/transformer.png", "assets/readme/heads.png", "assets/components/logo.svg"):
        path = ROOT / picture
        files.append(File.generated(config, f"assets/{path.name}", content=path.read_bytes()))
    return files


def on_page_markdown(markdown: str, *, page: Any, files: Files, config: Any, **_: Any) -> str:
    """Point links of the repository at pages of the site, and those of the course at the app.

    A file that is not a page keeps its name and loses its link.
    """
    here = Path(page.file.src_uri).parent
    folder = Path() if page.file.src_uri in _FROM_ROOT else Path("docs")
    if (ROOT / folder / page.file.src_uri).is_file():
        folder /= here
    markdown = re.sub(r"^\[English\]\(README\.md\).*\n", "", markdown, flags=re.MULTILINE)

    def rewrite(match: re.Match[str]) -> str:
        mark, text, target = match.groups()
        if target.startswith(_COURSE_ADDRESS):
            return f"[{text}]({config['extra']['app'].rstrip('/')}{target.removeprefix(_COURSE_ADDRESS)})"
        if re.match(r"[a-z]+:|#", target) or "?" in target:
            return match[0]
        path, _, anchor = target.partition("#")
        at = _site_path((ROOT / folder / path).resolve())
        if at is None or files.get_file_from_path(at) is None:
            return text
        up = "../" * len([part for part in here.parts if part != "."])
        return f"{mark}[{text}]({up}{at}{'#' * bool(anchor)}{anchor})"

    return re.sub(r"(!?)\[([^\]]*)\]\(([^)\s]+)\)", rewrite, markdown)


def _names(path: Path, wanted: Callable[[ast.AST], bool]) -> list[str]:
    """The names within the nodes of a file that are wanted."""
    found = [node for node in ast.walk(ast.parse(path.read_text("utf-8"))) if wanted(node)]
    return [node.id for each in found for node in ast.walk(each) if isinstance(node, ast.Name)]


def on_post_page(output: str, *, page: Any, config: Any, **_: Any) -> str:
    """Say what a page is for sites that show links to it; a picture needs the whole address, ATLAS_SITE."""
    site = os.environ.get("ATLAS_SITE", "").rstrip("/")
    tags = {
        "type": "website",
        "title": f"{page.title} · {config['site_name']}",
        "description": config["site_description"],
    }
    tags |= {"image": f"{site}/docs/assets/transformer.png"} if site else {}
    lines = (f'<meta property="og:{name}" content="{escape(text, quote=True)}">\n' for name, text in tags.items())
    return output.replace("</head>", "".join(lines) + "</head>", 1)


def _chapter_links(chapters: Sequence[str], app: str) -> str:
    """Where a name is shown: a line of links to chapters of the app."""
    titles = {each: (ROOT / "assets" / "text" / "en" / f"{each}.md").read_text("utf-8") for each in chapters}
    links = [
        f"[{re.search(r'^title: (.*)$', text, re.MULTILINE)[1]}]({app.rstrip('/')}/{each})"
        for each, text in titles.items()
    ]
    return f"\nShown in {', '.join(links)}.\n"


def _site_path(path: Path) -> str | None:
    """Where on the site a file of the repository is."""
    if path.is_relative_to(ROOT / "docs"):
        return path.relative_to(ROOT / "docs").as_posix()
    if path in _cards():
        return _card_page(path)
    roots = {ROOT / source: name for name, source in _FROM_ROOT.items()}
    return roots.get(path, f"assets/{path.name}" if path.suffix in (".png", ".svg") else None)


def _cards() -> set[Path]:
    return {*ROOT.glob("assets/checkpoints/*/card.md"), *ROOT.glob("assets/hub/*/README.md")}


def _card_page(card: Path) -> str:
    return f"models/{card.parent.name}.md"


def _source(package: str) -> Path:
    return _file(f"viz_core{package}")


def _file(module: str) -> Path:
    path = ROOT / Path(*module.split("."))
    init = path / "__init__.py"  # a folder without one may be left of a package that is a module now
    return init if init.is_file() else path.with_suffix(".py")


def _entry(module: str, name: str) -> str:
    """What mkdocstrings replaces with the docstring of a name, at the place that defines it."""
    if f"{module}.{name}" == "viz_core.view":  # a package that can be called
        return "\n::: viz_core.view._Callable.__call__\n    options:\n      heading: view\n      toc_label: view\n"
    return f"\n::: {_definition(module, name)}\n"


def _definition(module: str, name: str) -> str:
    """Follow imports of a name to the module that defines it."""
    for node in ast.walk(ast.parse(_file(module).read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            for each in node.names:
                if (each.asname or each.name) == name:
                    return _definition(node.module, each.name)
    return f"{module}.{name}"


def _page(package: str) -> str:
    return f"{package.strip('.') or 'index'}.md"


def _reference(package: str, links: Mapping[str, str]) -> str:
    """A page with the docstring of each public name of a package, and links to the chapters that show its code."""
    name = f"viz_core{package}"
    doc = ast.get_docstring(ast.parse(_source(package).read_text("utf-8"))) or ""
    names = "".join(_entry(name, each) + links.get(each, "") for each in public_names(package))
    others = "".join(f"- [viz_core{each}]({_page(each)})\n" for each in PACKAGES if each) if not package else ""
    return f"# {name}\n\n{doc}\n\n{others}{names}"
