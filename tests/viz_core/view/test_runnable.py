"""The notebook that a view saves: valid, and as it says."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import nbformat
import pytest
import torch

from tests.viz_core.view.attention_groups import make_group
from viz_core.view.payload import View
from viz_core.view.pins import Pin
from viz_core.view.runnable import Recipe, recording_recipe, write_notebook
from viz_core.view.state import Look, ViewState
from viz_core.view.words import view_words

START = ViewState("cross", 0, 0)
RECIPE = Recipe("from viz_core import view\n\nrun = 1")


def cells(state: ViewState, recipe: Recipe = RECIPE, language: str = "en", **words: str) -> list[str]:
    view = View([make_group(5, 7)], view_words(language) | words, language=language)
    book = nbformat.reads(write_notebook(view, state, START, recipe).decode(), as_version=4)
    nbformat.validate(book)
    return [cell.source for cell in book.cells]


def test_it_says_what_it_is_and_opens_what_was_open() -> None:
    text, run, look = cells(ViewState("cross", 1, 2, (Pin("query", 3), Pin("query", 4))))
    assert text.startswith("# Attention, Layer 2, head 3\n")
    assert run == RECIPE.code
    assert look.splitlines() == [
        "shown = view(run)",
        "shown.open_head('decoder.1.cross', head=2, pins=['q3', 'q4'])",
        "shown",
    ]


@pytest.mark.parametrize(
    ("look", "written"),
    [
        (Look(), ""),
        (Look(palette="magma", zoom="0.0.2.2"), ", look={'palette': 'magma', 'zoom': '0.0.2.2'}"),
        (Look(compare="side", other="0.1.2"), ", look={'compare': 'side', 'other': '0.1.2'}"),
        (Look(scale="log", compare="side", other="1.1.2"), ", look={'scale': 'log'}"),
    ],
)
def test_of_the_look_what_differs_comes_along(look: Look, written: str) -> None:
    assert cells(replace(START, look=look))[2].splitlines()[1] == f"shown.open_head('decoder.0.cross', head=0{written})"


def test_what_it_needs_and_its_language_are_said() -> None:
    words = {"notebook_needs_picture": "Bring the picture."}
    text, _, look = cells(START, RECIPE.then("more", ("picture",)), "pt-BR", **words)
    assert text.endswith("Bring the picture.")
    assert look.startswith("shown = view(run, language='pt-BR')")


def test_what_no_model_made_comes_along_as_it_was_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    tokens = ('"', "\\n", "{x}", "é", "\n")
    group = make_group(5, 5, "self", query_tokens=tokens, key_tokens=tokens)
    state = ViewState("self", 1, 2, (Pin("key", 3),))
    content = write_notebook(View([group], view_words()), state, state, recording_recipe(group))
    names: dict[str, Any] = {}
    for cell in nbformat.reads(content.decode(), as_version=4).cells[1:]:
        exec(cell.source, names)
    shown = names["shown"]
    assert (shown.site, shown.head, shown.pins) == ("decoder.1.self", 2, ("k3",))
    assert shown.groups[0].query_tokens == shown.groups[0].key_tokens == tokens
    for mine, theirs in zip(shown.groups[0].calls, group.calls, strict=True):
        torch.testing.assert_close(mine.weights(), theirs.weights(), rtol=0, atol=0)


@pytest.mark.attack("exports")
def test_whatever_was_typed_stays_text() -> None:
    """Quotes, line ends, half a character: the file is ASCII, and the code a literal."""
    typed = "a\"b'c\n```\ud800é猫"
    _, run, _ = cells(START, Recipe(f"run = {typed!r}"))
    names: dict[str, str] = {}
    exec(run, names)
    assert names["run"] == typed
    assert json.loads(write_notebook(View([make_group(2, 2)], view_words()), START, START, RECIPE))["nbformat"] == 4
