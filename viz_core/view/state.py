"""The state of an attention view: the open head, pinned tokens and display options."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace

from viz_core.maps.register import MEASURES
from viz_core.trace.edits import is_nonnegative
from viz_core.view.map_group import MapGroup
from viz_core.view.requests import Pin, read_pins

MOST_PINS = 64

_HEAD = r"[0-9]{1,4}\.[0-9]{1,4}"
# What each way of looking may be, as it stands in a message of the browser and in a link.
_ALLOWED = {
    "mode": "map|links|picture",
    "scale": "sqrt|linear|log",
    "palette": "viridis|cividis|magma|greys",
    "unit": "tokens|words",
    "fold": "mean|sum",
    "heads": rf"one|layer|all|{_HEAD}(?:_{_HEAD}){{0,63}}",
    "how": "mean|max",
    "compare": "off|side|difference",
    "other": rf"[01]\.{_HEAD}|none",
    "sort": "layer|changed|" + "|".join(MEASURES),
    "filter": r"[\w .<>=,;、-]{0,40}",
    "links": r"w[01](?:\.[0-9]{1,4})?|k[0-9]{1,2}",
    "patches": "exact|smooth|off",
    "zoom": r"whole|[0-9]{1,6}\.[0-9]{1,6}\.[0-9]{1,6}\.[0-9]{1,6}",
}


@dataclass(frozen=True)
class DisplayOptions:
    """How the open head is displayed. Every field is a string, the same in messages, links and defaults."""

    mode: str = "map"  # "map", "links", or for groups with a picture "picture"
    scale: str = "sqrt"  # how colour grows with weight: "sqrt", "linear" or "log"
    palette: str = "viridis"  # "viridis", "cividis", "magma" or "greys"
    unit: str = "tokens"  # "tokens" or "words"
    fold: str = "mean"  # several pinned tokens are read as their "mean" or "sum"
    heads: str = "one"  # "one" (the open one), "layer" (all of its layer), "all", or chosen ones ("2.1_2.3")
    how: str = "mean"  # several heads are combined by "mean" or "max"
    compare: str = "off"  # "off", "side" by side or "difference", with `other`
    other: str = "none"  # input, layer and head compared with ("1.2.5"), or "none"
    sort: str = "layer"  # order of the grid: "layer", a measure, or "changed" between two inputs
    filter: str = ""  # which heads the grid shows ("previous > 0.5")
    links: str = "w0.1"  # which links are drawn: those from a weight on ("w0.05") or the strongest of each query ("k3")
    patches: str = "exact"  # how attention lies over a picture: "exact" squares, "smooth", or "off"
    zoom: str = "whole"  # "whole", or first row, first column, rows and columns of the part shown ("128.0.64.64")

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not re.fullmatch(_ALLOWED[name], value):
                raise ValueError(f"{name}: expected {_ALLOWED[name]}, got {value!r}")


@dataclass(frozen=True)
class ViewState:
    """The opened head: its group's id, its layer and head counted from 0; pinned tokens, all on one side; the look."""

    group: str
    layer: int
    head: int
    pins: tuple[Pin, ...] = ()
    display: DisplayOptions = field(default_factory=DisplayOptions)

    def fits(self, groups: Sequence[MapGroup]) -> bool:
        """Whether these groups have that head, those tokens and all heads that the look names."""
        group = next((group for group in groups if group.id == self.group), None)
        if group is None or not has_head(group, self.layer, self.head):
            return False
        if self.display.mode == "picture" and group.seen is None:
            return False
        if len(self.pins) > MOST_PINS or len({pin.axis for pin in self.pins}) > 1:
            return False
        sizes = {"query": len(group.query_tokens), "key": len(group.key_tokens)}
        if not all(0 <= pin.index < sizes[pin.axis] for pin in self.pins):
            return False
        return all(has_head(group, layer, head) for layer, head in chosen_heads(self.display.heads))


def has_head(group: MapGroup, layer: int, head: int) -> bool:
    """Whether a group has this layer and head."""
    return 0 <= layer < len(group.calls) and 0 <= head < group.calls[layer].num_heads


def chosen_heads(heads: str) -> list[tuple[int, int]]:
    """Layer and head of each in "2.1_2.3"; none for "one", "layer" and "all"."""
    return [(int(layer), int(head)) for layer, head in re.findall(r"(\d+)\.(\d+)", heads)]


def read_display(words: Mapping[str, object], default: DisplayOptions) -> tuple[DisplayOptions, bool]:
    """Return the options that these strings name, and whether all were valid; the rest as in `default`."""
    known = {item.name for item in fields(DisplayOptions)}
    good = {
        name: value
        for name, value in words.items()
        if name in known and isinstance(value, str) and re.fullmatch(_ALLOWED[name], value)
    }
    return replace(default, **good), len(good) == len(words)


def read_message(message: object, groups: Sequence[MapGroup], default: ViewState) -> ViewState | None:
    """Read the state that a browser reports: {"group", "layer", "head", "pins": ["q3", ...], "display": {name: value}}.

    None where it is not such a mapping or these groups have no such head; pins and heads that are not there are left
    out (the sentence may have become shorter since).
    """
    if not isinstance(message, Mapping):
        return None
    group, layer, head = message.get("group"), message.get("layer"), message.get("head")
    if not isinstance(group, str) or not is_nonnegative(layer) or not is_nonnegative(head):
        return None
    words = message.get("display")
    options = {str(name): value for name, value in words.items()} if isinstance(words, Mapping) else {}
    display, _ = read_display(options, default.display)
    state = ViewState(group, layer, head, display=display)
    if not state.fits(groups):
        state = replace(state, display=replace(display, heads="one"))
    if not state.fits(groups):
        return None
    pins = message.get("pins")
    pinned = replace(state, pins=read_pins(".".join(map(str, pins))) or () if isinstance(pins, list) else ())
    return pinned if pinned.fits(groups) else state
