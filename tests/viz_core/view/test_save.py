"""The view as a file: a page, a notebook, a page whose model runs in the browser."""

import base64
import re
from dataclasses import replace
from functools import cache
from html import unescape
from pathlib import Path
from typing import Any

import nbformat
import pytest
import torch

from benchmarks.view_bytes import decode_view
from tests.viz_core.view.attention_groups import make_group, page_of
from viz_core import load, load_hub, view
from viz_core.hub import Sampling
from viz_core.runtime.assets import Provenance
from viz_core.trace import intervene, knock_out, off
from viz_core.view.components import view_words
from viz_core.view.notebook import ViewHandle
from viz_core.view.payload import View
from viz_core.view.requests import Pin
from viz_core.view.save import RunSource, saved_view
from viz_core.view.state import DisplayOptions, ViewState

START = ViewState("cross", 0, 0)
RUN_SOURCE = RunSource("from viz_core import view\n\nrun = 1")


def cells(state: ViewState) -> list[str]:
    view = View([make_group(5, 7)], view_words())
    content = saved_view(view, state, ".ipynb", run_source=RUN_SOURCE, default=START)
    book = nbformat.reads(content.decode(), as_version=4)
    nbformat.validate(book)
    return [cell.source for cell in book.cells]


def test_it_says_what_it_is_and_opens_what_was_open() -> None:
    text, run, display = cells(ViewState("cross", 1, 2, (Pin("query", 3), Pin("query", 4))))
    assert text.startswith("# Attention, Layer 2, head 3\n")
    assert run == RUN_SOURCE.code
    opening = "shown.open_head('decoder.1.cross', head=2, pins=['q3', 'q4'])"
    assert display.splitlines() == ["shown = view(run)", opening, "shown"]


@pytest.mark.parametrize(
    ("display", "written"),
    [
        (DisplayOptions(), ""),
        (DisplayOptions(palette="magma", zoom="0.0.2.2"), ", display={'palette': 'magma', 'zoom': '0.0.2.2'}"),
        (DisplayOptions(compare="side", other="0.1.2"), ", display={'compare': 'side', 'other': '0.1.2'}"),
        (DisplayOptions(scale="log", compare="side", other="1.1.2"), ", display={'scale': 'log'}"),
    ],
)
def test_of_the_look_what_differs_comes_along(display: DisplayOptions, written: str) -> None:
    _, call, _ = cells(replace(START, display=display))[2].splitlines()
    assert call == f"shown.open_head('decoder.0.cross', head=0{written})"


def opened(content: bytes) -> ViewHandle:
    """What a notebook shows once its cells have run, one after the other."""
    names: dict[str, Any] = {}
    for cell in nbformat.reads(content.decode(), as_version=4).cells[1:]:
        exec(cell.source, names)
    shown: ViewHandle = names["shown"]
    return shown


@cache
def loaded(name: str) -> Any:
    """A shipped model, read once."""
    return load_hub(name, device="cpu", offline=True) if name == "writer-en" else load(name, device="cpu")


def translated() -> ViewHandle:
    """With a head off: its maps are more than queries and keys."""
    with intervene({"decoder.2.cross": off(0)}):
        return view(loaded("transformer-en-fr").translate("The cat is sleeping."))


def cross_alone() -> ViewHandle:
    """The second row of a batch, with tokens that code must quote; nobody says what the other stack is called."""
    maps = torch.rand(2, 3, 4, 5).softmax(-1)
    return view((maps, maps.flip(0)), ('"', "\\n", "{x}", "\n"), ["é", "w", "x", "y", "'"], row=1)


@pytest.mark.parametrize("make", [translated, cross_alone])
def test_a_view_of_python_is_saved_as_a_notebook(make, tmp_path, monkeypatch):
    """Tokens of rows and columns, the head, pins and look of the second cross or self map; its numbers, to the bit."""
    before = make()
    before.open_head(before.groups[-1].calls[1].site, 0, ["q1", "q2"], {"palette": "cividis"})
    before.save(tmp_path / "view.ipynb")
    content = (tmp_path / "view.ipynb").read_bytes()
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    shown = opened(content)
    assert list(Path.cwd().iterdir()) == [], "it leaves nothing beside itself"
    assert (shown.site, shown.head, shown.pins) == (before.site, 0, ("q1", "q2"))
    assert shown.display == replace(before.display, mode="map")
    for mine, theirs in zip(shown.groups, before.groups, strict=True):
        assert (mine.query_tokens, mine.key_tokens, mine.row) == (theirs.query_tokens, theirs.key_tokens, theirs.row)
        for one, other in zip(mine.calls, theirs.calls, strict=True):
            torch.testing.assert_close(one.weights(), other.weights(), rtol=0, atol=0)


BEAMS_DIFFER = "He has curly hair."


def address(handle: ViewHandle, folder: Path) -> str:
    handle.save(folder / "x.html", live="https://example.org/atlas/")
    found = re.search('src="https://example.org/atlas/([^"]*)"', (folder / "x.html").read_text(encoding="utf-8"))
    assert found
    return unescape(found[1])


def test_the_address_holds_text_beam_heads_pins_and_look(tmp_path: Path) -> None:
    translator = loaded("transformer-en-fr")
    with intervene({"decoder.2.cross": off(1), "encoder.0.self": off(5)}):
        handle = view(translator.translate("I am lost."), language="pt-BR")
    handle.open_head("decoder.1.cross", 3, pins="q1", display={"mode": "links"})
    expected = "text=I+am+lost.&beam=1&off=encoder-self.0.5_cross.2.1&head=cross.1.3&pin=q1&look=mode-links"
    assert address(handle, tmp_path) == f"pt-BR/view.html#{expected}"
    handle.save(tmp_path / "x.html", live=True, map_only=True)
    saved = (tmp_path / "x.html").read_text(encoding="utf-8")
    assert 'src="site/pt-BR/view.html#' in saved
    assert '&amp;only=map"' in saved
    with pytest.raises(ValueError, match="map_only: expected live"):
        handle.save(tmp_path / "x.html", map_only=True)
    greedy, beams = (translator.translate(BEAMS_DIFFER, beam=beam) for beam in (1, 4))
    assert greedy.text != beams.text
    assert "&beam=4&" in address(view(beams), tmp_path)


def test_what_the_site_does_not_show_is_refused(tmp_path: Path) -> None:
    with intervene({"decoder.1.cross": knock_out(2, query=1, key=0)}):
        edited = loaded("transformer-en-fr").translate("I am lost.")
    others = (
        loaded("writer-en").run("Tom is", max_new_tokens=12, sampling=Sampling(1.5, seed=3)).view(),
        view(edited),
        view(edited.trace),
    )
    for handle in others:
        with pytest.raises(ValueError, match="does not compute these maps"):
            handle.save(tmp_path / "x.html", live=True)
    with pytest.raises(ValueError, match="expected a name that ends in .html"):
        view(edited).save(tmp_path / "x.ipynb", live=True)
    assert not list(tmp_path.iterdir())


def bytes_in(page: str) -> bytes:
    return base64.b64decode(re.search(r'id="data">([^<]*)<', page)[1])


def test_a_page_holds_every_map_and_asks_for_nothing():
    group = make_group(5, 7)
    page = page_of(View([group], view_words()), ViewState("cross", 1, 2))
    decoded = decode_view(bytes_in(page))
    assert decoded.header["offline"] is True
    for layer in range(2):
        for head in range(3):
            sent = decoded.parts[f"map 0.cross:{layer}.{head}:mean:tokens"]
            assert torch.equal(sent, group.calls[layer].weights(head=head)[0])
    assert not re.findall(r"""(?:src|href)\s*=\s*["']?(?:https?:)?//""", page)
    loads = re.findall(r"^import\b|import\s*\(.*|fetch\s*\(|@import", page, flags=re.MULTILINE)
    assert loads == []


@pytest.mark.attack("exports")
def test_where_the_same_view_opens_is_told_and_is_an_address_of_the_web():
    view, state = View([make_group(2, 2, "self")], view_words()), ViewState("self", 0, 0)
    page = page_of(view, state, link='https://atlas.example/t?head=a&pin="><img>')
    assert page.count("https://atlas.example/t?head=a&amp;pin=&quot;&gt;&lt;img&gt;") == 3  # head and foot
    assert "<img>" not in page
    assert "<footer>" not in page_of(view, state)
    with pytest.raises(ValueError, match="link: expected an address that begins with https"):
        page_of(view, state, link="javascript:alert(1)")


def test_the_page_is_headed_by_its_title_the_model_and_the_text():
    made = Provenance("<b>small</b>", "", "He is calm.")
    view, state = View([make_group(2, 2, "self", provenance=made)], view_words()), ViewState("self", 0, 0)
    page = page_of(view, state, title="A page")
    header = page.split("<header>")[1].split("</header>")[0]
    assert header.startswith("<h1>A page</h1>")
    assert "<title>A page · &lt;b&gt;small&lt;/b&gt;</title>" in page
    assert "&lt;b&gt;small&lt;/b&gt;" in header
    assert "He is calm." in header
    assert "<header>" not in page_of(view, state)


def test_a_file_holds_the_measures_of_layers_of_all_heads_and_of_words():
    group = make_group(3, 4, layers=2, heads=2, key_words=(0, 0, 1, 2))
    other = make_group(3, 4, layers=2, heads=2, key_words=(0, 0, 1, 2))
    page = page_of(View([group], view_words(), [other], ("a", "b")), ViewState("cross", 0, 0))
    parts = {part["name"]: part for part in decode_view(bytes_in(page)).header["parts"]}
    assert parts["measures 0.cross:0.0_0.1:max:tokens"]["measures"].keys() == {"first"}
    assert {
        *("measures 1.cross:0.0_0.1_1.0_1.1:mean:words", "measures 0.cross:1.1:mean:words", "change 0 cross 1"),
        *("measures 0.cross:1.0_1.1:mean:tokens", "measures 1.cross:0.0_0.1:max:words"),
    } <= parts.keys()
