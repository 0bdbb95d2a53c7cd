"""The widget without a browser and in a kernel: what it answers to what a browser says, and its traits."""

import base64
import io
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import numpy as np
import pytest
import torch
from nbclient import NotebookClient
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook
from PIL import Image

from benchmarks.view_bytes import DecodedView, decode_view
from tests.source_files import ROOT
from tests.viz_core.view.attention_groups import make_group
from tests.viz_core.view.test_messages import GROUPS
from viz_core.trace import attend, record
from viz_core.view import view
from viz_core.view.notebook import AttentionView
from viz_core.view.state import DisplayOptions, ViewState
from viz_core.view.widget import AttentionWidget


class Browser:
    """Who speaks with a widget as its script does, and keeps what it is sent."""

    def __init__(self, widget: AttentionWidget) -> None:
        self.widget = widget
        self.received: list[tuple[dict[str, Any], list[bytes]]] = []
        widget.send = lambda content, buffers=None: self.received.append((content, buffers or []))

    def say(self, message: object) -> None:
        self.widget._handle_custom_msg(message, [])

    def move(self, turn: int, state: dict[str, Any], *wants: str) -> None:
        """Open another head; all else as at first."""
        place = {"group": "self", "layer": 0, "head": 0, "pins": [], "display": {}} | state
        self.say({"turn": turn, "id": f"a.{turn}", "have": self.widget.view.stamp, "wants": list(wants)} | place)

    def last(self) -> DecodedView:
        content, (data,) = self.received[-1]
        assert content == {"problem": None}
        return decode_view(data)


@pytest.fixture
def browser() -> Browser:
    return Browser(AttentionWidget(GROUPS))


def test_a_browser_that_begins_gets_all_it_needs(browser: Browser) -> None:
    browser.say({})
    header = browser.last().header
    assert (header["turn"], header["state"]["group"], header["offers"]) == (0, "self", ["page", "notebook"])
    assert [group["id"] for group in header["base"]["groups"][0]] == ["self", "cross"]
    assert "picture 0 self 0" in browser.last().parts


def test_what_the_reader_opens_is_read(browser: Browser) -> None:
    widget = browser.widget
    observed: list[tuple[str, int, tuple[str, ...]]] = []
    widget.observe(lambda _: observed.append((widget.site, widget.head, widget.pins)), ["site", "head", "pins"])
    browser.move(1, {"group": "cross", "layer": 1, "head": 1, "pins": ["k6", "k2"]}, "token 0 cross 1 k6")
    assert (widget.site, widget.head, widget.pins) == ("decoder.1.cross", 1, ("k6", "k2"))
    assert observed, "no observer was called"
    assert set(observed) == {("decoder.1.cross", 1, ("k6", "k2"))}, "an observer saw half of the change"
    weights = GROUPS[1].calls[1].weights(keys=slice(6, 7))[0, ..., 0]
    torch.testing.assert_close(browser.last().parts["token 0 cross 1 k6"], weights, rtol=0, atol=0)
    assert "base" not in browser.last().header, "the browser had it"


def test_what_is_set_opens_in_the_browser(browser: Browser) -> None:
    browser.say({})
    browser.widget.site = "decoder.1.self"
    browser.widget.head = 2
    browser.widget.pins = "q3"
    browser.widget.display = {"scale": "log"}
    header = browser.last().header
    assert (header["turn"], len(browser.received)) == (4, 5)
    state = header["state"]
    assert (state["group"], state["layer"], state["head"], state["pins"]) == ("self", 1, 2, ["q3"])
    assert state["display"]["scale"] == "log"
    assert (browser.widget.pins, browser.widget.display) == (("q3",), DisplayOptions(scale="log"))
    browser.move(4, {"head": 3})  # sent before that had arrived
    assert browser.widget.head == 2
    assert browser.last().header["state"]["head"] == 2
    browser.move(5, {"head": 3})
    assert browser.widget.head == 3


@pytest.mark.parametrize(
    "message", [None, "x", [], {"turn": "1"}, {"turn": 1, "group": "nothing", "layer": 0, "head": 0}, {"wants": "map"}]
)
def test_nonsense_moves_nothing(browser: Browser, message: object) -> None:
    browser.say(message)
    assert browser.widget.state == ViewState("self", 0, 0)


def test_files_are_written_on_request_and_the_view_goes_on_where_they_cannot(browser: Browser) -> None:
    browser.move(1, {"head": 1}, "page", "notebook")
    page, notebook = (bytes(browser.last().parts[name].tolist()).decode() for name in ("page", "notebook"))
    assert page == browser.widget.page()
    assert "shown.open_head('decoder.0.self', head=1)" in notebook
    browser = Browser(view(torch.zeros(17, 1, 512, 512), row=0))
    browser.move(1, {"group": "0-attention", "pins": ["q3"]}, "notebook")
    content, (data,) = browser.received[-1]
    assert "save_trace keeps it" in content["problem"]
    assert decode_view(data).header["missing"] == ["notebook"]
    assert browser.widget.pins == ("q3",)


def test_a_recording_that_was_changed_says_so() -> None:
    queries = torch.randn(1, 2, 3, 4)
    with record() as trace:
        attend(queries, queries, queries)
    browser = Browser(view(trace))
    queries.zero_()
    browser.say({})
    assert "changed in place after it was recorded" in browser.received[-1][0]["problem"]
    assert browser.received[-1][1] == []


@pytest.fixture
def outputs(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, str]]:
    """What a cell that shows a widget puts out."""
    found: list[dict[str, str]] = []
    monkeypatch.setattr("viz_core.view.widget.display", lambda data, **_: found.append(data))
    AttentionWidget([make_group(5, 7)])._ipython_display_()
    return found


def test_a_widget_is_no_heavier_than_it_must_be(outputs: list[dict[str, str]]) -> None:
    """A cell's output names the widget; frames and pages would make a notebook megabytes long."""
    pictures, widget = outputs
    assert "application/vnd.jupyter.widget-view+json" in widget
    assert not hasattr(AttentionWidget, "_repr_html_")
    assert len(str(widget)) < 1000
    assert len(pictures["text/html"]) < 40_000
    assert pictures["text/plain"] == "AttentionWidget(decoder.0.cross, head 0, one of 6)"
    group, (_, encoded) = make_group(5, 7), re.findall(r'base64,([^"]+)"', pictures["text/html"])
    grid = np.asarray(Image.open(io.BytesIO(base64.b64decode(encoded))))
    cells = grid[:: grid.shape[0] // (len(group.calls) * 7 - 2)].T[:: grid.shape[0] // (len(group.calls) * 7 - 2)].T
    for head, thumbnail in enumerate(group.picture(0).thumbnails[:2]):
        np.testing.assert_array_equal(cells[:5, 9 * head : 9 * head + 7], 255 - thumbnail.numpy())


SHOW = """
import torch
from viz_core import view
shown = view(torch.arange(1.0, 33).reshape(2, 4, 4) / 128, "a b c d".split())
shown
"""
WAIT = 120


def executed(code: str) -> NotebookNode:
    """A notebook that has run its one cell."""
    book = new_notebook(cells=[new_code_cell(code)])
    NotebookClient(book, timeout=WAIT, kernel_name="python3", resources={"metadata": {"path": str(ROOT)}}).execute()
    return book


def test_without_the_extra_it_is_a_frame() -> None:
    program = (
        "import sys; sys.modules['anywidget'] = None; import torch; import viz_core.view.show as show\n"
        "show.find_spec = lambda _: None; from viz_core import view\n"
        "shown = view(torch.eye(3)); print(type(shown).__name__, shown._repr_html_()[:15])"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["AttentionView", "<iframe", "srcdoc="], done.stderr[-500:]


@pytest.mark.parametrize("form", ["widget", "saved"])
def test_a_viewer_like_githubs_has_the_picture(form: str, tmp_path: Path) -> None:
    """It shows stored outputs: HTML without frames, scripts and handlers, or else a picture; no script runs."""
    AttentionView([make_group(5, 7)]).save(tmp_path / "maps.ipynb")
    book = executed(SHOW) if form == "widget" else nbformat.read(tmp_path / "maps.ipynb", as_version=4)
    nbformat.validate(book)
    (first, *others) = book.cells[-1].outputs
    assert {kind for each in others for kind in each.data} <= {"application/vnd.jupyter.widget-view+json", "text/plain"}
    page = re.sub(r"<(iframe|script|style)\b.*?</\1>|\son\w+=\"[^\"]*\"", "", first.data["text/html"], flags=re.DOTALL)
    pictures = re.findall(r'<img alt="[^"]+" [^>]*src="data:image/png;base64,([^"]+)">', page)
    assert len(pictures) == 2
    shown = [Image.open(io.BytesIO(base64.b64decode(each))) for each in (*pictures, first.data["image/png"])]
    assert all(low < high for low, high in (each.convert("L").getextrema() for each in shown)), "an empty picture"
    assert shown[2].height == sum(each.height for each in shown[:2]), "one picture has the open map and every head"
