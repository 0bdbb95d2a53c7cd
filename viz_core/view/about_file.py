"""What a figure says of itself wherever it goes: as the app's do (attention_view/about_file.js), in the same words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from viz_core.view.map_group import MapGroup
from viz_core.view.map_shown import ShownMap, shown_heads, shown_map
from viz_core.view.payload import View
from viz_core.view.state import ViewState

_MOST_NAMED = 12  # heads


@dataclass(frozen=True)
class Panel:
    """One map of a figure, and what it is called; `signed` where it is a difference."""

    title: str
    group: MapGroup
    shown: ShownMap
    signed: bool = False


def panels(view: View, state: ViewState) -> list[Panel]:
    """The open map; with the one that it is compared with, or their difference where they are equally large.

    Raises:
        ValueError: if the view has no such kind of map.
    """
    group = view.group(0, state.group)
    if group is None:
        raise ValueError(f"state: expected one of {', '.join(each.id for each in view.groups)}, got {state.group}")
    other = _compared(view, state)
    number = other[0] if other else 0
    first = Panel(_name(view, 0, number, group, state), group, shown_map(group, state))
    if other is None:
        return [first]
    _, against, there = other
    second = Panel(_name(view, number, number, against, there), against, shown_map(against, there))
    if state.look.compare == "side" or first.shown.weights.shape != second.shown.weights.shape:
        return [first, second]
    title = _fill(view.words["minus"], first=first.title, second=second.title)
    weights = first.shown.weights - second.shown.weights
    return [Panel(title, group, replace(first.shown, weights=weights), signed=True)]


def lines(view: View, state: ViewState, shown: Sequence[Panel]) -> list[str]:
    """What else must be known to read the numbers; then model and text of each input that is shown."""
    words, look, (first, *_) = view.words, state.look, shown
    heads = shown_heads(first.group, state)
    said = []
    if 1 < len(heads) < sum(call.num_heads for call in first.group.calls):
        names = [_short(words, first.group, *head) for head in heads[:_MOST_NAMED]]
        more = " …" if len(heads) > _MOST_NAMED else ""
        said.append(_fill(words["of_heads"], names=", ".join(names) + more))
    if len(heads) > 1 and look.how == "max":
        said.append(words["rows_not_one"])
    if look.unit == "words" and (first.group.query_words or first.group.key_words):
        said.append(words["merged"])
    rows, columns = first.shown.pool
    if (rows, columns) != (1, 1):
        said.append(_fill(words["pooled"], rows=rows, columns=columns))
    inputs = [0, *([other[0]] if (other := _compared(view, state)) else [])]
    for made in dict.fromkeys(found.made for number in inputs if (found := view.group(number, state.group))):
        if made.model:
            name = "made_by_revision" if made.revision else "made_by"
            said.append(_fill(words[name], model=made.model, revision=made.revision))
        if made.text:
            said.append(_fill(words["made_of"], text=made.text))
    return list(dict.fromkeys(said))


def _compared(view: View, state: ViewState) -> tuple[int, MapGroup, ViewState] | None:
    """Input, group and state of what the open map is compared with."""
    if state.look.compare == "off" or state.look.other == "none":
        return None
    number, layer, head = map(int, state.look.other.split("."))
    group = view.group(number, state.group)
    there = replace(state, layer=layer, head=head, pins=() if number else state.pins)
    there = replace(there, look=replace(state.look, heads="one"))
    return None if group is None or not there.fits([group]) else (number, group, there)


def _name(view: View, number: int, other: int, group: MapGroup, state: ViewState) -> str:
    """A head's name, or how many are combined; of which input, where two are shown."""
    heads = shown_heads(group, state)
    if len(heads) > 1:
        name = _fill(view.words[f"combined_{state.look.how}"], count=len(heads))
    else:
        ((layer, head),) = heads
        name = _fill(view.words["head_name"], layer=group.calls[layer].layer + 1, head=head + 1)
    return _fill(view.words["of_input"], name=name, input=view.inputs[number]) if other else name


def _short(words: Mapping[str, str], group: MapGroup, layer: int, head: int) -> str:
    number = group.calls[layer].layer + 1
    return f"{_fill(words['layer_short'], layer=number)} {_fill(words['head_short'], head=head + 1)}"


def _fill(text: str, /, **values: object) -> str:
    for name, value in values.items():
        text = text.replace("{" + name + "}", str(value))
    return text
