"""The view as a notebook's widget: its script in Chromium, a model that speaks as anywidget's does, and Python."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.browser.attention_view.live_view import KEYS, START
from tests.viz_core.view.attention_groups import make_group
from viz_core.view.map_group import MapGroup
from viz_core.view.widget import AttentionWidget

# What JupyterLab gives a widget: a model that carries messages, and an element.
_NOTEBOOK = """
const bytesOf = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
const listeners = new Set();
window.deliver = (messages) => {
  for (const [content, buffers] of messages) {
    for (const listener of listeners) listener(content, buffers.map((text) => new DataView(bytesOf(text).buffer)));
  }
};
window.sent = [];
const model = {
  get: (name) => ({ _pictures: "attention-1" })[name],
  on: (name, listener) => name === "msg:custom" && listeners.add(listener),
  off: (name, listener) => listeners.delete(listener),
  send: (message) => {
    window.sent.push(message);
    if (!window.busy) window.askPython(JSON.stringify(message)).then(window.deliver);
  },
};
const script = URL.createObjectURL(new Blob([await window.getScript()], { type: "text/javascript" }));
const { default: widget } = await import(script);
window.end = widget.render({ model, el: document.getElementById("cell") });
"""


class Notebook:
    """A page with a cell that shows the widget."""

    def __init__(self, page: Page, widget: AttentionWidget) -> None:
        self.page, self.widget = page, widget
        self._outbox: list[tuple[dict[str, Any], list[str]]] = []
        widget.send = lambda content, buffers=None: self._outbox.append(
            (content, [base64.b64encode(data).decode() for data in buffers or []])
        )
        page.expose_function("askPython", self._receive)
        page.expose_function("getScript", lambda: widget._esm)
        page.set_content(
            "<!doctype html><style>h2, button, p { color: red; display: none }</style>"
            f'<body style="background: white">'
            f'<div class="attention-1">pictures</div><div id="cell"></div><script type="module">{_NOTEBOOK}</script>'
        )
        expect(page.get_by_role("application").first).to_have_attribute("data-exact", "true")
        expect(page.get_by_text("pictures")).to_be_hidden()

    def _receive(self, text: str) -> list[Any]:
        self.widget._handle_custom_msg(json.loads(text), [])
        return self._take()

    def _take(self) -> list[Any]:
        sent, self._outbox = self._outbox, []
        return sent

    def deliver(self) -> None:
        """Deliver what Python has sent since the last request."""
        self.page.evaluate("messages => window.deliver(messages)", self._take())

    def head(self, layer: int, head: int) -> Locator:
        return self.page.locator(f'button.head[data-layer="{layer}"][data-head="{head}"]')

    def until(self, name: str, value: object) -> None:
        for _ in range(1500):
            if getattr(self.widget, name) == value:
                return
            self.page.wait_for_timeout(20)
        raise AssertionError(f"{name} stays {getattr(self.widget, name)}")


@pytest.fixture
def notebook(page: Page, cross: MapGroup) -> Notebook:
    return Notebook(page, AttentionWidget([cross, make_group(5, 5, "self", layers=1)], START))


def test_what_is_opened_here_is_open_there(notebook: Notebook) -> None:
    notebook.head(1, 2).click()
    notebook.until("head", 2)
    assert notebook.widget.site == "decoder.1.cross"
    notebook.page.locator(".line.queries .token").nth(2).click()
    notebook.until("pins", ("q2",))

    notebook.widget.open_head("decoder.0.cross", 1, ["k1"])
    notebook.deliver()
    expect(notebook.head(0, 1)).to_have_attribute("aria-selected", "true")
    expect(notebook.page.locator(".line.keys .token[aria-pressed=true]")).to_have_text(KEYS[1])

    notebook.head(0, 2).click()  # and the reader goes on from there
    notebook.until("head", 2)
    assert notebook.widget.pins == ("k1",)


def test_the_notebooks_styles_stay_outside(notebook: Notebook) -> None:
    heading = notebook.page.get_by_role("heading", name="Read it on the sentence")
    expect(heading).to_be_visible()
    expect(heading).not_to_have_css("color", "rgb(255, 0, 0)")


def test_it_follows_the_notebook_into_the_dark(notebook: Notebook) -> None:
    root = notebook.page.locator("[data-part=root]")
    expect(root).to_have_attribute("data-theme", "light")
    notebook.page.evaluate("document.body.style.background = '#111'")
    expect(root).to_have_attribute("data-theme", "dark")
    notebook.head(1, 0).click()
    notebook.until("site", "decoder.1.cross")
    expect(root).to_have_attribute("data-theme", "dark")
    notebook.page.evaluate("document.body.dataset.jpThemeLight = 'true'")  # as JupyterLab, whose styles come later
    expect(root).to_have_attribute("data-theme", "light")


def test_a_busy_kernel_is_asked_once(notebook: Notebook) -> None:
    page = notebook.page
    page.evaluate("window.busy = true; window.sent.length = 0")
    for layer, head in ((0, 1), (0, 2), (1, 0), (1, 1)):
        notebook.head(layer, head).click()
        page.wait_for_timeout(60)
    sent = page.evaluate("window.sent")
    assert len(sent) == 1
    page.evaluate("window.busy = false; window.askPython(JSON.stringify(window.sent[0])).then(window.deliver)")
    notebook.until("site", "decoder.1.cross")
    assert notebook.widget.head == 1
    assert page.evaluate("window.sent.length") == 2
    expect(notebook.head(1, 1)).to_have_attribute("aria-selected", "true")


def test_saving_offers_what_a_notebook_can(notebook: Notebook) -> None:
    page = notebook.page
    page.locator("[data-part=exports] summary").click()
    expect(page.locator("[data-export=svg]")).to_be_visible()
    expect(page.locator("[data-export=link]")).to_be_hidden()
    with page.expect_download() as download:
        page.locator("[data-export=page]").click()
    assert download.value.path().read_text("utf-8") == notebook.widget.page()
    page.locator("[data-part=exports] summary").click()
    with page.expect_download() as download:
        page.locator("[data-export=notebook]").click()
    assert download.value.suggested_filename.endswith(".ipynb")
    assert "shown = view(recording, tokens, keys)" in download.value.path().read_text("utf-8")


def test_a_problem_is_said_in_the_cell(notebook: Notebook) -> None:
    notebook.page.evaluate("window.deliver([[{ problem: 'a tensor was changed' }, []]])")
    expect(notebook.page.get_by_role("alert")).to_have_text("a tensor was changed")
    notebook.head(1, 2).click()
    expect(notebook.page.get_by_role("alert")).to_be_hidden()


def test_a_cell_that_is_cleared_listens_no_longer(notebook: Notebook) -> None:
    notebook.page.evaluate("window.end()")
    sent = notebook.page.evaluate("window.sent.length")
    notebook.widget.head = 2
    notebook.deliver()
    notebook.page.wait_for_timeout(100)
    assert notebook.page.evaluate("window.sent.length") == sent
