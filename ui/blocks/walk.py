"""The walk: one forward pass of a shipped model, played in the browser."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace

import streamlit as st

from serving.requests.request import Picture
from serving.requests.shipped import CLASSIFIER, TRANSLATOR, WRITER, classify, write
from ui.compute.models import evaluate_model
from ui.compute.slots import run_in_slot
from ui.text.words import load_words
from ui.widgets.walk import encode_walk, mount_walk, walk_links, walk_words
from viz_core.lab.walk import walk_translation
from viz_core.lab.walk_records import Edits, Walk, walk_edits

_MAX_EDITS = 8
_KEY, _PLACE, _EDITS, _WAS, _LAST = "walk", "walk-at", "walk-edits", "walk-was", "walk-last"


@dataclass(frozen=True)
class WalkInputs:
    """What a walk is of: a model and its text or picture, and how the writer chooses words."""

    kind: str
    text: str = ""
    picture: Picture | None = None
    temperature: float = 0.0
    top_k: int = 0

    def walk(self, edits: Edits = ()) -> Walk:
        """Return the walk, computed in a slot and cached.

        Raises:
            ValueError: if the model cannot take this input; the message is for the reader.
        """
        if self.kind == "translator":
            return evaluate_model(TRANSLATOR, walk_translation, self.text, edits)
        if self.kind == "picture" and self.picture is not None:
            return evaluate_model(CLASSIFIER, classify, self.picture, edits)
        return evaluate_model(WRITER, write, self.text, self.temperature, self.top_k, edits)


def draw_walk(inputs: WalkInputs, restore: Callable[[WalkInputs], None]) -> bool:
    """Draw a walk; the URL holds the place that is open, the edits, and the text before it was changed. Return True.

    Args:
        restore: sets the controls to the inputs before the reader's changes.

    Raises:
        ValueError: if the model cannot take the input; the message is for the reader.
    """
    walk = inputs.walk()
    edits = _edits(walk)
    if edits:
        walk = inputs.walk(edits)
    original, before = _original(inputs)
    state = st.session_state.get(_KEY) or {}
    if current := state.get("place"):
        st.query_params[_PLACE] = str(current)[:80]
    # What a link opens: later moves are the browser's own, and need no new data.
    opened = st.session_state.setdefault("walk-opened", st.query_params.get(_PLACE, ""))
    # Of the place in the URL ("softmax.0.1.0.0~..."), or the one that is shown first.
    block = _block(state.get("block"), walk) or _block(".".join(opened.split("~")[0].split(".")[1:3]), walk)
    words = load_words("walk")
    links = walk_links(words)
    identity = hashlib.sha256(repr((inputs, edits, original)).encode())

    def undo() -> None:
        _forget(_EDITS)
        _forget(_WAS)
        st.session_state[_LAST], st.session_state[_WAS] = original, original.text
        restore(original)

    def encode() -> bytes:
        return encode_walk(
            walk,
            key=identity.hexdigest()[:16],
            kind=inputs.kind,
            block=block or (0, None),
            edits=edits,
            before=before if edits or original != inputs else None,
            words=walk_words(words),
            links=links,
            language=words.language,
            state=opened,
        )

    mount_walk(
        key=_KEY,
        data=run_in_slot(encode, "view"),
        on_place_change=lambda: None,
        on_block_change=lambda: None,
        on_edit_change=_editor(undo),
    )
    return True


def _original(inputs: WalkInputs) -> tuple[WalkInputs, Walk]:
    """Return the inputs, and their walk, before the reader's changes: the text before the last, and nothing sampled."""
    last = st.session_state.get(_LAST, inputs)
    # In the session too: a message sent before the browser has the new URL brings the old one back.
    was = st.session_state.get(_WAS, st.query_params.get(_WAS, inputs.text))
    if last.kind != inputs.kind:
        was = inputs.text
    elif last.text != inputs.text:
        was = last.text
    st.session_state[_LAST], st.session_state[_WAS] = inputs, was
    original = replace(inputs, text=was, temperature=0.0, top_k=0)
    if was != inputs.text:
        try:
            walk = original.walk()
            st.query_params[_WAS] = was
            return original, walk
        except ValueError:  # a link holds a text that the model cannot take
            original = replace(original, text=inputs.text)
    st.session_state[_WAS] = inputs.text
    _forget(_WAS)
    return original, original.walk()


def _editor(undo: Callable[[], None]) -> Callable[[], None]:
    """Return the callback that applies the edit a reader asks for; the same edit again undoes it, null undoes all."""

    def apply() -> None:
        message = (st.session_state.get(_KEY) or {}).get("edit")
        wanted = message.get("edit") if isinstance(message, dict) else None
        if not isinstance(wanted, list):
            undo()
            return
        edit, edits = tuple(map(str, wanted)), _edits()
        edits = tuple(each for each in edits if each != edit) if edit in edits else (*edits, edit)[-_MAX_EDITS:]
        _forget(_EDITS)
        if edits:
            st.query_params[_EDITS] = "~".join("_".join(each) for each in edits)

    return apply


def _edits(walk: Walk | None = None) -> Edits:
    """Return the edits that the URL holds; what is malformed, or of another model or a longer text, is left out."""
    found = tuple(tuple(each.split("_")) for each in st.query_params.get(_EDITS, "").split("~")[:_MAX_EDITS] if each)
    try:
        walk_edits(found)
    except ValueError:
        return ()
    return found if walk is None else tuple(edit for edit in found if _fits(edit, walk))


def _fits(edit: tuple[str, ...], walk: Walk) -> bool:
    """Whether a walk has the head, or the pair of query and key, that an edit names."""
    calls = {call.site: call for stack in walk.stacks for block in stack.blocks for call in block.attentions}
    name, site, *numbers = edit
    if site not in calls:
        return False
    heads, rows, columns = calls[site].weights.shape
    sizes = (heads,) if name == "off" else (rows, columns)
    return all(int(number) < size for number, size in zip(numbers, sizes, strict=True))


def _forget(name: str) -> None:
    if name in st.query_params:
        del st.query_params[name]


def _block(name: object, walk: Walk) -> tuple[int, int] | None:
    """Return the numbers of a stack and a block from "0.2", if the walk has them."""
    numbers = str(name).split(".")
    if len(numbers) != 2 or not all(each.isdecimal() and len(each) < 4 for each in numbers):
        return None
    stack, block = map(int, numbers)
    return (stack, block) if stack < len(walk.stacks) and block < len(walk.stacks[stack].blocks) else None
