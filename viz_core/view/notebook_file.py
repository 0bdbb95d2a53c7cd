"""Notebooks that reproduce a view: the run, and the same head, pins and display options."""

import base64
import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from viz_core.trace import Trace, save_trace
from viz_core.trace.files import saved_source
from viz_core.view.figure_caption import fill
from viz_core.view.grouping import other_stack
from viz_core.view.map_group import MapGroup
from viz_core.view.open_state import site_of_state
from viz_core.view.payload import View
from viz_core.view.state import ViewState, open_group

_RECORDED = """
from base64 import b64decode
from pathlib import Path
from tempfile import mkdtemp

from viz_core import view
from viz_core.trace import load_trace

file = Path(mkdtemp()) / "recording.safetensors"  # queries and keys, as they were when this was saved
file.write_bytes(b64decode("{written}"))
recording = load_trace(file)
tokens = {tokens}
keys = {keys}
"""

MOST_BYTES = 16 * 2**20
"""A notebook carries a recording no larger than this; an editor would hardly open one."""

Need = Literal["picture", "sound", "video", "model"]
"""What does not come along with a notebook; its text says so in the words of this name."""


@dataclass(frozen=True)
class RunSource:
    """Python code that makes what a view shows."""

    code: str  # Python, after which `view` and what it is given are there
    needs: tuple[Need, ...] = ()  # what must be there besides the library
    shown: str = "run"  # what it is given

    def then(self, code: str, needs: tuple[Need, ...] = ()) -> "RunSource":
        """Append code."""
        return RunSource(f"{self.code}\n{code}", (*self.needs, *needs), self.shown)


def recording_source(groups: Sequence[MapGroup]) -> RunSource:
    """Source for a notebook that carries the recording itself, queries and keys.

    Calls whose maps come of more than these (an edit, shares of what a head adds) come along as their maps.
    """
    trace = Trace()
    for call in dict.fromkeys(call for group in groups for call in group.calls):
        trace.add(saved_source(call), call.site)
    if trace.nbytes > MOST_BYTES:
        raise ValueError(
            f"notebook: expected a recording of at most {MOST_BYTES // 2**20} MB, got {trace.nbytes / 2**20:.0f} MB; "
            "viz_core.trace.save_trace keeps it in a file of its own"
        )
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recording"
        save_trace(trace, path)
        written = base64.b64encode(path.read_bytes()).decode("ascii")
    tokens, keys = _names(groups)
    row = f", row={groups[0].row}" if groups[0].row else ""
    return RunSource(_RECORDED.format(written=written, tokens=tokens, keys=keys), shown=f"recording, tokens, keys{row}")


def _names(groups: Sequence[MapGroup]) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Tokens of each stack, and keys of its self-attention where they are others, as `viz_core.view` takes them."""
    tokens: dict[str, list[str]] = {}
    keys: dict[str, list[str]] = {}
    for group in groups:
        tokens.setdefault(group.calls[0].stack, list(group.query_tokens))
    for group in groups:
        call = group.calls[0]
        if call.kind == "cross":
            run, slash, _ = call.stack.rpartition("/")
            read = other_stack(call.stack, list(tokens))
            tokens.setdefault(f"{run}{slash}source" if read == call.stack else read, list(group.key_tokens))
        elif group.key_tokens != group.query_tokens:
            keys.setdefault(call.stack, list(group.key_tokens))
    return tokens, keys


def recorded_notebook(view: View, state: ViewState) -> bytes:
    """A view as a notebook that carries what it shows; a picture that tokens are patches of stays behind."""
    if state.display.mode == "picture":
        state = replace(state, display=replace(state.display, mode="map"))
    return write_notebook(view, state, ViewState(state.group, 0, 0), recording_source(view.groups))


def write_notebook(view: View, state: ViewState, default: ViewState, run_source: RunSource) -> bytes:
    """A notebook (nbformat 4.5) that installs nothing and runs from top to bottom.

    Args:
        view: what is shown; its words say what the notebook is and needs.
        state: what is open.
        default: what `viz_core.view` opens by itself.
        run_source: how the run was made.
    """
    words, number = view.words, open_group(view.groups, state).calls[state.layer].layer + 1
    name = fill(words["head_name"], layer=number, head=state.head + 1)
    text = [f"# {fill(words['notebook_title'], name=name)}", words["notebook_text"]]
    text += [words[f"notebook_needs_{need}"] for need in run_source.needs]
    language = "" if view.language == "en" else f", language={view.language!r}"
    display = f"shown = view({run_source.shown}{language})\n{_opening(view.groups, state, default)}\nshown"
    cells = [_cell("markdown", "\n\n".join(text)), _cell("code", run_source.code.strip()), _cell("code", display)]
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
    """The line that opens the same head; a second input does not come along."""
    arguments = [repr(site_of_state(groups, state)), f"head={state.head}"]
    if state.pins:
        arguments.append(f"pins={[str(pin) for pin in state.pins]}")
    of_second = ("compare", "other") if state.display.other.startswith("1.") else ()
    changed = state.display.changes_from(default.display).items()
    if display := {name: value for name, value in changed if name not in of_second}:
        arguments.append(f"display={display}")
    return f"shown.open_head({', '.join(arguments)})"


def _cell(kind: str, source: str) -> dict[str, object]:
    cell: dict[str, object] = {"cell_type": kind, "metadata": {}, "source": source.splitlines(keepends=True)}
    return cell if kind == "markdown" else cell | {"execution_count": None, "outputs": []}
