"""The messages between Python and the attention view, encoded as docs/attention-view.md specifies."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from viz_core.view.components import WORD_NAMES, Sections, frame
from viz_core.view.map_group import MapGroup
from viz_core.view.requests import FileRequest, Part, ViewRequest
from viz_core.view.responses import answer, initial_requests
from viz_core.view.state import ViewState

VERSION = 3

MAX_WANTS = 64

_RULES = {
    "difference of softmaxes": "rule_difference",
    "gated delta rule": "rule_delta",
    "Kimi delta rule": "rule_kimi",
    "lightning attention": "rule_lightning",
    "state-space duality": "rule_duality",
    "softmax of sampled queries": "rule_sampled",
}
"""The word for each rule but the softmax of all queries; a signed map that was loaded from a file has none."""


@dataclass(frozen=True)
class View:
    """Everything a view shows, whatever the reader does."""

    groups: Sequence[MapGroup]  # the kinds of maps, in the order of their tabs
    words: Mapping[str, str] = field(repr=False)  # every word of `WORD_NAMES`
    second: Sequence[MapGroup] = ()  # the same kinds of maps for another input, to compare with; or none
    inputs: tuple[str, str] = ("", "")  # what the two inputs are, for people; needed with `second`
    language: str = "en"  # of the words, as a BCP 47 tag; decides how numbers are written
    # ids of groups whose two maps stand beside each other and are never subtracted: no token of the one is known to
    # stand for one of the other
    beside: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        ids = [group.id for group in self.groups]
        if not ids or len(set(ids)) != len(ids):
            raise ValueError(f"groups: expected one of each id, got {', '.join(ids) or 'none'}")
        if self.second and [group.id for group in self.second] != ids:
            raise ValueError(f"second: expected groups {', '.join(ids)}, got {', '.join(g.id for g in self.second)}")
        missing = [name for name in WORD_NAMES if name not in self.words]
        if missing:
            raise ValueError(f"words: expected all of WORD_NAMES, got none for {', '.join(missing)}")

    @property
    def stamp(self) -> str:
        """Identifier that differs between any two groups or languages."""
        stamps = "-".join(group.stamp for group in (*self.groups, *self.second))
        return f"{self.language}:{stamps}:{'|'.join(self.inputs)}:{'|'.join(self.beside)}"

    def group(self, number: int, name: str) -> MapGroup | None:
        """A group by its input and id."""
        groups = (self.groups, self.second)[number]
        return next((group for group in groups if group.id == name), None)


def encode_view(
    view: View,
    state: ViewState,
    *,
    turn: int = 0,
    known: bool = False,
    wants: Sequence[ViewRequest] = (),
    max_wants: int = MAX_WANTS,
    files: Mapping[FileRequest, bytes] | None = None,
    offers: Sequence[str] = (),
    switches: Sequence[str] | None = None,
    offline: bool = False,
    folded: Mapping[str, str] | None = None,
    message_id: str | None = None,
) -> bytes:
    """Encode the next answer to the browser.

    Args:
        view: what there is.
        state: what to open.
        turn: how many moves of the reader `state` takes account of: a browser that has moved on
            since keeps its own state and takes only the parts.
        known: whether the browser holds the base of this view already.
        wants: what it asks for; what cannot be had is named in `missing`.
        max_wants: so many of them are answered.
        files: what was written for the file requests among them.
        offers: what can be saved with Python behind it: "page", "notebook", "link".
        switches: the heads that are off (`switch_names`); None where none can be switched.
        offline: whether nothing can be asked for later.
        folded: how the display options at first differ from the usual ones, where most controls wait behind "More"
            until one of them is used; None where all are open.
        message_id: of the message with the requests; two answers to the same requests must differ to be shown.
    """
    if not state.fits(view.groups):
        ids = ", ".join(group.id for group in view.groups)
        raise ValueError(f"state: expected a head and tokens of the groups {ids}, got {state}")
    requests = dict.fromkeys([*([] if known else initial_requests(view.groups, state)), *wants[:max_wants]])
    answers = answer(view.group, requests)
    for file, content in (files or {}).items():
        answers[file] = Part("bytes", np.frombuffer(content, np.uint8))
    sections, parts = Sections(), []
    for request in requests:
        if part := answers.get(request):
            place = {"name": str(request), "kind": part.kind, "offset": sections.add(part.array)}
            parts.append(place | {"shape": list(part.array.shape)} | part.notes)
    header = {
        "version": VERSION,
        "stamp": view.stamp,
        "turn": turn,
        "state": asdict(state) | {"pins": [str(pin) for pin in state.pins]},
        "offline": offline,
        "folded": folded,
        "message_id": message_id,
        "offers": list(offers),
        "switches": switches,
        "parts": parts,
        "missing": [str(request) for request in requests if request not in answers],
    }
    if not known:
        header["base"] = _base(view)
    return frame(header, sections)


def _base(view: View) -> dict[str, Any]:
    both = (view.groups, view.second) if view.second else (view.groups,)
    return {
        "language": view.language,
        "words": {name: view.words[name] for name in WORD_NAMES},
        "inputs": list(view.inputs),
        "beside": list(view.beside),
        "groups": [[_describe(group) for group in groups] for groups in both],
    }


def _describe(group: MapGroup) -> dict[str, Any]:
    return {
        "id": group.id,
        "label": group.label,
        "queries_label": group.queries_label,
        "keys_label": group.keys_label,
        "query_tokens": group.query_tokens,
        "key_tokens": group.key_tokens,
        "query_words": group.query_words,
        "key_words": group.key_words,
        "measures": [
            {"name": each.name, "unit": each.unit, "maximum": each.maximum(group.map_info)}
            | ({"signed": True} if each.signed else {})
            for each in group.measures
        ],
        "exact": group.sent_whole,
        "image": group.image
        and {
            "grid": group.image.grid,
            "special": group.image.num_special,
            "queries": group.image.of_queries,
            "levels": group.image.levels,
        },
        "layers": [
            {"number": call.layer + 1, "heads": call.num_heads}
            | ({"rule": _RULES.get(call.rule, "")} if call.signed or call.rule in _RULES else {})
            | ({"signed": True} if call.signed else {})
            | ({"chooses": True} if getattr(call.source, "chooses", False) else {})
            for call in group.calls
        ],
        "provenance": asdict(group.provenance),
    }
