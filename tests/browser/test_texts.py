"""Where a text breaks that is written on a canvas or over a chart, where no browser breaks it for us."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import Page

TEXT = Path(__file__).resolve().parents[2] / "assets" / "components" / "shared" / "text.js"
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
)
def test_no_line_begins_with_a_comma_or_ends_with_a_bracket(page: Page, text: str, pieces: list[str]) -> None:
    found = page.evaluate(WRAP, [TEXT.read_text(encoding="utf-8"), text])
    assert found["pieces"] == pieces
    assert len(found["all"]) > 3
    for wrapped in found["all"]:
        lines = wrapped["lines"]
        assert wrapped["fits"]
        assert re.sub(" ", "", "".join(lines)) == text.replace(" ", "")
        assert not [line for line in lines if line[0] in "，。：）」" or line[-1] in "（「"]
