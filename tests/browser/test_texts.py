"""Scripts and texts in a browser: modules that no server answers, and where lines break."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.browser.page_checks import watch
from viz_core.view.components import link_modules, read_component

COMPONENTS = Path(__file__).resolve().parents[2] / "assets" / "components"
WRAP = """async ([source, text]) => {
    const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
    const { piecesOf, textWidth, wrap } = await import(address);
    const font = "12px sans-serif";
    const long = (piece) => textWidth(piece, font);
    const all = [];
    for (let width = Math.ceil(Math.max(...piecesOf(text).map(long))); width < long(text); width += 4) {
        const lines = wrap(text, width, font);
        all.push({ lines, fits: lines.every((line) => long(line) <= width) });
    }
    return { pieces: piecesOf(text), all };
}"""


@pytest.mark.parametrize(
    ("text", "pieces"),
    [
        ("logits (of x), y", ["logits", " ", "(of", " ", "x),", " ", "y"]),
        ("softmax，看「貓」：第 2 層（頭 3）。", "softmax，|看|「貓」：|第| |2| |層|（頭| |3）。".split("|")),
        ("權重（attention），展開。", "權|重|（attention），|展|開。".split("|")),
    ],
    ids=["English", "Chinese", "both"],
)
def test_no_line_begins_with_a_comma_or_ends_with_a_bracket(page: Page, text: str, pieces: list[str]) -> None:
    found = page.evaluate(WRAP, [(COMPONENTS / "shared" / "canvas.js").read_text(encoding="utf-8"), text])
    assert found["pieces"] == pieces
    assert len(found["all"]) > 3
    for wrapped in found["all"]:
        lines = wrapped["lines"]
        assert wrapped["fits"]
        assert re.sub(" ", "", "".join(lines)) == text.replace(" ", "")
        assert not [line for line in lines if line[0] in "，。：）」" or line[-1] in "（「"]


def formula(*parts: str) -> str:
    """As KaTeX writes one: a line may break after each part, which ends with a relation."""
    bases = "".join(f"<span class='base'><span>{part}</span></span>" for part in parts)
    return f"<span class='katex'><span class='katex-html'>{bases}</span></span>"


def test_no_comma_is_parted_from_a_formula_and_a_long_one_still_breaks(page: Page) -> None:
    watch(page)
    page.goto("about:blank")
    sentences = (
        f"甲乙{formula('x=', 'y')}，一二三（{formula('ab')}）四五",
        f"some words {formula('x=', 'y')}, more ({formula('ab')}).",
    )
    texts = "".join(f"<p style='width:{width}px'>{text}</p>" for width in range(60, 260, 4) for text in sentences)
    page.set_content(f"<style>.base {{ display: inline-block; white-space: nowrap; }}</style>{texts}")
    assert len(broken(page)) > 3  # as a browser does it, which takes a formula for a box
    page.add_style_tag(content=(COMPONENTS / "app.css").read_text(encoding="utf-8"))
    assert broken(page) == []
    parted = (
        "(all) => all.some(({ children: [a, b] }) => b?.getBoundingClientRect().top > a.getBoundingClientRect().top)"
    )
    assert page.locator(".katex-html").evaluate_all(parted)


def broken(page: Page) -> list[str]:
    return [each for each in page.evaluate("textsThatDoNotFit()") if each.startswith("broken")]


def test_a_browser_follows_an_import_over_several_lines(page: Page) -> None:
    sources = {
        "x/main.js": 'import {\n  one,\n  two as b,\n} from "../shared/b.js";\nexport default () => one + b;\n',
        "shared/b.js": 'export { one } from "./c.js";\nexport const two = 2;\n',
        "shared/c.js": "export const one = 1;\n",
    }
    assert page.evaluate(f"(async () => ({link_modules(sources, 'x/main.js')})())()") == 3


def test_every_component_loads(page: Page) -> None:
    page.goto("about:blank")
    for path in sorted(COMPONENTS.glob("*/main.js")):
        show = read_component(path.parent.name).show
        assert page.evaluate(f"(async () => typeof ({show}))()") == "function", path
