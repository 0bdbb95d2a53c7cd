"""The notebook that a view saves: valid, and as it says."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
import pytest
import torch
from PIL import Image

from tests.viz_core.view.attention_groups import make_group
from viz_core import intervene, load, view
from viz_core.trace import off
from viz_core.view.components import view_words
from viz_core.view.notebook import ViewHandle
from viz_core.view.payload import View
from viz_core.view.requests import Pin
from viz_core.view.save import RunSource, saved_view
from viz_core.view.state import DisplayOptions, ViewState

START = ViewState("cross", 0, 0)
RUN_SOURCE = RunSource("from viz_core import view\n\nrun = 1")


def cells(state: ViewState, run_source: RunSource = RUN_SOURCE, language: str = "en", **words: str) -> list[str]:
    view = View([make_group(5, 7)], view_words(language) | words, language=language)
    book = nbformat.reads(
        saved_view(view, state, ".ipynb", run_source=run_source, default=START).decode(), as_version=4
    )
    nbformat.validate(book)
    return [cell.source for cell in book.cells]


def test_it_says_what_it_is_and_opens_what_was_open() -> None:
    text, run, display = cells(ViewState("cross", 1, 2, (Pin("query", 3), Pin("query", 4))))
    assert text.startswith("# Attention, Layer 2, head 3\n")
    assert run == RUN_SOURCE.code
    assert display.splitlines() == [
        "shown = view(run)",
        "shown.open_head('decoder.1.cross', head=2, pins=['q3', 'q4'])",
        "shown",
    ]


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
    assert (
        cells(replace(START, display=display))[2].splitlines()[1]
        == f"shown.open_head('decoder.0.cross', head=0{written})"
    )


def test_what_it_needs_and_its_language_are_said() -> None:
    words = {"notebook_needs_picture": "Bring the picture."}
    text, _, display = cells(START, RUN_SOURCE.then("more", ("picture",)), "pt-BR", **words)
    assert text.endswith("Bring the picture.")
    assert display.startswith("shown = view(run, language='pt-BR')")


def opened(content: bytes) -> ViewHandle:
    """What a notebook shows once its cells have run, one after the other."""
    names: dict[str, Any] = {}
    for cell in nbformat.reads(content.decode(), as_version=4).cells[1:]:
        exec(cell.source, names)
    shown: ViewHandle = names["shown"]
    return shown


def test_what_no_model_made_comes_along_as_it_was_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tokens = ('"', "\\n", "{x}", "é", "\n")
    group = make_group(5, 5, "self", query_tokens=tokens, key_tokens=tokens)
    state = ViewState("self", 1, 2, (Pin("key", 3),))
    shown = opened(saved_view(View([group], view_words()), state, ".ipynb", default=state))
    assert (shown.site, shown.head, shown.pins) == ("decoder.1.self", 2, ("k3",))
    assert shown.groups[0].query_tokens == shown.groups[0].key_tokens == tokens
    for mine, theirs in zip(shown.groups[0].calls, group.calls, strict=True):
        torch.testing.assert_close(mine.weights(), theirs.weights(), rtol=0, atol=0)
    assert list(tmp_path.iterdir()) == [], "it leaves nothing beside itself"


def translated() -> ViewHandle:
    """With a head off: its maps are more than queries and keys."""
    with intervene({"decoder.2.cross": off(0)}):
        return view(load("transformer-en-fr", "cpu").translate("The cat is sleeping."))


def classified() -> ViewHandle:
    return view(load("vit-fashion-mnist", "cpu").classify(Image.new("L", (30, 20), 90)))


def cross_alone() -> ViewHandle:
    """The second row of a batch; nobody says what the other stack is called."""
    maps = torch.rand(2, 3, 4, 5).softmax(-1)
    return view((maps, maps.flip(0)), "a b c d".split(), "v w x y z".split(), row=1)


@pytest.mark.parametrize("make", [translated, classified, cross_alone])
def test_a_view_of_python_is_saved_as_a_notebook(make: Callable[[], ViewHandle], tmp_path: Path) -> None:
    """Tokens of rows and columns, the head, pins and look of the second cross or self map; its numbers, to the bit."""
    before = make()
    before.open_head(before.groups[-1].calls[1].site, 0, ["q1", "q2"], {"palette": "cividis"})
    before.save(tmp_path / "view.ipynb")
    shown = opened((tmp_path / "view.ipynb").read_bytes())
    assert (shown.site, shown.head, shown.pins) == (before.site, 0, ("q1", "q2"))
    assert shown.display == replace(before.display, mode="map")
    for mine, theirs in zip(shown.groups, before.groups, strict=True):
        assert (mine.query_tokens, mine.key_tokens, mine.row) == (theirs.query_tokens, theirs.key_tokens, theirs.row)
        for one, other in zip(mine.calls, theirs.calls, strict=True):
            torch.testing.assert_close(one.weights(), other.weights(), rtol=0, atol=0)


def test_a_recording_too_large_for_an_editor_stays_out(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="at most 16 MB, got 17 MB; viz_core.trace.save_trace keeps it"):
        view(torch.zeros(17, 1, 512, 512)).save(tmp_path / "view.ipynb")


@pytest.mark.attack("exports")
def test_whatever_was_typed_stays_text() -> None:
    """Quotes, line ends, half a character: the file is ASCII, and the code a literal."""
    typed = "a\"b'c\n```\ud800é猫"
    _, run, _ = cells(START, RunSource(f"run = {typed!r}"))
    names: dict[str, str] = {}
    exec(run, names)
    assert names["run"] == typed
    assert (
        json.loads(saved_view(View([make_group(2, 2)], view_words()), START, ".ipynb", run_source=RUN_SOURCE))[
            "nbformat"
        ]
        == 4
    )
