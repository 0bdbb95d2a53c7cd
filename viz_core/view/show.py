"""Groups and initial state of anything that `viz_core.view` can show."""

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from PIL.Image import Image

from viz_core.trace import AttentionCall, Trace
from viz_core.trace.arguments import is_index
from viz_core.trace.trace import EMPTY_TRACE_HINT
from viz_core.view.grouping import Names, Tokens, check_tokens, group_calls, read_tokens, weight_calls, with_picture
from viz_core.view.map_group import MapGroup
from viz_core.view.notebook import AttentionView, ViewHandle
from viz_core.view.state import ViewState, over_picture

Opening = tuple[tuple[MapGroup, ...], ViewState]
"""Groups, and what of them is open at first."""

_RUN = "viz_core.hub.runs.run.HubRun"
# Functions that know a result. They are imported when such a result is shown: a model of Hugging Face brings much
# along, and where none has run, what it takes may not even be installed.
_OPENERS = {
    "viz_core.pretrained.translation.Translation": "viz_core.view.shipped:open_translation",
    "viz_core.pretrained.classifier.Classification": "viz_core.view.shipped:open_classification",
    _RUN: "viz_core.view.hub:open_run",
}


def show(
    what: Any,
    tokens: Tokens | None,
    keys: Tokens | None,
    row: int | None,
    language: str,
    labels: Names | None = None,
    picture: Image | None = None,
) -> ViewHandle:
    """`viz_core.view`, which says what each of these is: a widget where the extra is installed, else a frame."""
    if labels is not None:
        if not any(f"{kind.__module__}.{kind.__qualname__}" == _RUN for kind in type(what).__mro__):
            raise ValueError(f"labels: expected those of a HubRun, got a {type(what).__name__}: give tokens and keys")
        from viz_core.view.hub import relabelled

        what = relabelled(what, labels)
    groups, state = _open(what, tokens, keys, row, language)
    if picture is not None:
        groups = with_picture(groups, picture)
        state = over_picture(next(group for group in groups if group.image is not None and group.image.levels))
    if find_spec("anywidget") is None:
        return AttentionView(groups, state, language=language)
    from viz_core.view.widget import AttentionWidget  # the extra "notebook"

    return AttentionWidget(groups, state, language=language)


def _open(what: object, tokens: Tokens | None, keys: Tokens | None, row: int | None, language: str) -> Opening:
    open_run = _opener_for(what)
    if open_run is not None:
        if tokens is not None or keys is not None or row:
            raise ValueError(f"tokens, keys, row: expected none for a {type(what).__name__}, which knows its own")
        return open_run(what, language)
    is_batch, row = row is not None, 0 if row is None else row
    if isinstance(what, AttentionCall):
        calls: tuple[AttentionCall, ...] = (what,)
    else:
        calls = tuple(what.stitched()) if isinstance(what, Trace) else weight_calls(what, keys is not None, is_batch)
    if not calls:
        raise ValueError(f"what: expected attention, got a trace without any: {EMPTY_TRACE_HINT}")
    if not is_index(row):
        raise ValueError(f"row: expected a number, got {row!r}")
    row = int(row)
    names, of_keys = read_tokens("tokens", tokens, row), read_tokens("keys", keys, row)
    check_tokens(calls, names, of_keys)
    groups = group_calls(calls, names, row, of_keys)
    return groups, ViewState(groups[0].id, 0, 0)


def _opener_for(what: object) -> Callable[[object, str], Opening] | None:
    """The function for what a model made of its input; None for attention by itself."""
    for kind in type(what).__mro__:
        opener = _OPENERS.get(f"{kind.__module__}.{kind.__qualname__}")
        if opener is not None:
            module, _, name = opener.partition(":")
            found: Callable[[object, str], Opening] = getattr(import_module(module), name)
            return found
    return None
