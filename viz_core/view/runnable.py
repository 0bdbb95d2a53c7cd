"""A view as a notebook that makes it again: the run, and the same head, pins and look."""

from __future__ import annotations

import base64
import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from viz_core.trace import Trace, save_trace
from viz_core.view.map_group import MapGroup
from viz_core.view.opened import site_of_state
from viz_core.view.payload import View
from viz_core.view.state import Look, ViewState

_RECORDED = """
from base64 import b64decode
from pathlib import Path

from viz_core import view
from viz_core.trace import load_trace

file = Path("recording.safetensors")  # queries and keys, as they were when this was saved
file.write_bytes(b64decode("{written}"))
recording = load_trace(file)
tokens = {tokens}
"""

Need = Literal["picture", "sound", "model"]
"""What does not come along with a notebook; its text says so in the words of this name."""


@dataclass(frozen=True)
class Recipe:
    """How what a view shows was made.

    Attributes:
        code: Python, after which `view` and what it is given are there.
        shown: what it is given.
        needs: what must be there besides the library.
    """

    code: str
    needs: tuple[Need, ...] = ()
    shown: str = "run"

    def then(self, code: str, needs: tuple[Need, ...] = ()) -> Recipe:
        """This, and after it more."""
        return Recipe(f"{self.code}\n{code}", (*self.needs, *needs), self.shown)


def recording_recipe(group: MapGroup) -> Recipe:
    """A recipe for what no shipped model made: the notebook carries the recording itself, queries and keys.

    Raises:
        ValueError: if a call does not hold what its maps come from.
    """
    trace = Trace()
    for call in group.calls:
        trace.add(call.source, call.site)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recording"
        save_trace(trace, path)
        written = base64.b64encode(path.read_bytes()).decode("ascii")
    return Recipe(_RECORDED.format(written=written, tokens=list(group.query_tokens)), shown="recording, tokens")


def write_notebook(view: View, state: ViewState, default: ViewState, recipe: Recipe) -> bytes:
    """A notebook (nbformat 4.5) that installs nothing and runs from top to bottom.

    Args:
        view: what is shown; its words say what the notebook is and needs.
        state: what is open.
        default: what `viz_core.view` opens by itself.
        recipe: how the run was made.
    """
    words, group = view.words, next(group for group in view.groups if group.id == state.group)
    number = group.calls[state.layer].layer + 1
    name = words["head_name"].replace("{layer}", str(number)).replace("{head}", str(state.head + 1))
    text = [f"# {words['notebook_title'].replace('{name}', name)}", words["notebook_text"]]
    text += [words[f"notebook_needs_{need}"] for need in recipe.needs]
    language = "" if view.language == "en" else f", language={view.language!r}"
    look = f"shown = view({recipe.shown}{language})\n{_opening(view.groups, state, default)}\nshown"
    cells = [_cell("markdown", "\n\n".join(text)), _cell("code", recipe.code.strip()), _cell("code", look)]
    book = {
        "cells": [cell | {"id": f"cell-{i}"} for i, cell in enumerate(cells)],
        "metadata": {
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
        "nbformat": 4,
        "nbformat_minor": 5,
    }
    return json.dumps(book, indent=1).encode("ascii")


def _opening(groups: Sequence[MapGroup], state: ViewState, default: ViewState) -> str:
    """The line that opens the same head."""
    arguments = [repr(site_of_state(groups, state)), f"head={state.head}"]
    if state.pins:
        arguments.append(f"pins={[str(pin) for pin in state.pins]}")
    if look := _changed(state.look, default.look):
        arguments.append(f"look={look}")
    return f"shown.open_head({', '.join(arguments)})"


def _changed(look: Look, before: Look) -> dict[str, str]:
    """The words of a look that differ; a second input does not come along."""
    of_second = look.other.startswith("1.")
    then = asdict(before)
    changed = {name: value for name, value in asdict(look).items() if value != then[name]}
    return {name: value for name, value in changed.items() if not (of_second and name in ("compare", "other"))}


def _cell(kind: str, source: str) -> dict[str, object]:
    cell: dict[str, object] = {"cell_type": kind, "metadata": {}, "source": source.splitlines(keepends=True)}
    return cell if kind == "markdown" else cell | {"execution_count": None, "outputs": []}
