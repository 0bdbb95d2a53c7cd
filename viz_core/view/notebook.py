"""The attention view in a notebook: the same view as in the app, without Streamlit."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from viz_core.trace import AttentionCall
from viz_core.view.map_group import MapGroup
from viz_core.view.page import view_page
from viz_core.view.payload import View
from viz_core.view.state import ViewState
from viz_core.view.words import view_words


@dataclass(frozen=True)
class AttentionView:
    """Maps that a notebook shows when this is the last thing in a cell, and that `save` writes to a file.

        with record() as trace:
            model(...)
        AttentionView(group_calls(trace, {"encoder": tokens}))

    Attributes:
        groups: the kinds of maps, each a tab.
        state: what is open at first; the first head unless given.
        second: the same kinds of maps of another input, to compare with.
        inputs: what the two inputs are, for people.
        language: of the words, as a BCP 47 tag.
        height: of the frame in a notebook, in pixels.
    """

    groups: Sequence[MapGroup]
    state: ViewState | None = None
    second: Sequence[MapGroup] = ()
    inputs: tuple[str, str] = ("A", "B")
    language: str = "en"
    height: int = field(default=900, kw_only=True)

    def page(self) -> str:
        """The view as one HTML page."""
        view = View(self.groups, view_words(self.language), self.second, self.inputs, self.language)
        return view_page(view, self.state or ViewState(self.groups[0].id, 0, 0))

    def save(self, path: str | Path) -> None:
        """Write the view to a file that opens without a server."""
        Path(path).write_text(self.page(), encoding="utf-8", errors="surrogatepass")

    def _repr_html_(self) -> str:
        # A frame of its own keeps the notebook's styles and the view's apart.
        page = html.escape(self.page(), quote=True)
        return f'<iframe srcdoc="{page}" style="width: 100%; height: {self.height}px; border: 0"></iframe>'


def group_calls(
    calls: Iterable[AttentionCall], tokens: Mapping[str, Sequence[object]], row: int = 0
) -> tuple[MapGroup, ...]:
    """The calls of a trace as groups: one for each stack and kind, whose maps are equally large.

    Args:
        calls: a trace, or some of its calls.
        tokens: texts, or the tokens of a run of a Hugging Face model, by the name of the stack ("encoder",
            "decoder"); queries of a stack are its tokens,
            keys of its cross-attention those of the other stack. Where they are not as many as the
            maps are large, positions are shown instead.
        row: which row of the batch.
    """
    found: dict[tuple[str, str, int, int], list[AttentionCall]] = {}
    for call in calls:
        found.setdefault((call.stack, call.kind, call.num_queries, call.num_keys), []).append(call)
    groups = []
    for number, ((stack, kind, queries, keys), members) in enumerate(found.items()):
        source = next((name for name in tokens if name != stack), stack) if kind == "cross" else stack
        label = f"{stack} {kind}" if stack != kind else stack
        groups.append(
            MapGroup(
                _identity(number, kind),
                label,
                stack,
                source,
                _named(tokens.get(stack), queries),
                _named(tokens.get(source), keys),
                tuple(members),
                row,
            )
        )
    return tuple(groups)


def _identity(number: int, kind: str) -> str:
    """A group's name in addresses: whatever a site is called, letters, digits and hyphens."""
    return re.sub(r"[^a-z0-9]+", "-", f"{number} {kind}".lower())[:32].strip("-")


def _named(tokens: Sequence[object] | None, count: int) -> tuple[str, ...]:
    """Tokens by their labels, where they are not texts themselves; numbers where they are not as many as asked."""
    named = tokens if tokens is not None and len(tokens) == count else range(count)
    return tuple(str(getattr(token, "label", token)) for token in named)
