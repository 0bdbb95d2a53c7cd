"""The state of an attention view: the open head, pinned tokens and display options, read from messages and Python."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from viz_core.maps.head_measures.distance import RADIUS
from viz_core.maps.measures import Patches
from viz_core.maps.register import MEASURES
from viz_core.trace.arguments import is_index
from viz_core.trace.edits import is_nonnegative
from viz_core.view.map_group import MapGroup
from viz_core.view.requests import Pin, read_pins

MAX_PINS = 64

_HEAD = r"[0-9]{1,4}\.[0-9]{1,4}"


def _option(default: str, allowed: str) -> Any:
    """An option that matches a pattern, also in a message of the browser and in a link."""
    return field(default=default, metadata={"allowed": allowed})


@dataclass(frozen=True)
class DisplayOptions:
    """How the open head is displayed. Every field is a string, the same in messages, links and defaults."""

    mode: str = _option("map", "map|links|picture")  # "picture" for groups with a picture
    scale: str = _option("sqrt", "sqrt|linear|log")  # how colour grows with weight
    palette: str = _option("viridis", "viridis|cividis|magma|greys")
    unit: str = _option("tokens", "tokens|words")
    fold: str = _option("mean", "mean|sum")  # how several pinned tokens are read
    # the open one, all of its layer, all, or chosen ones ("2.1_2.3")
    heads: str = _option("one", rf"one|layer|all|{_HEAD}(?:_{_HEAD}){{0,63}}")
    how: str = _option("mean", "mean|max")  # how several heads are combined
    compare: str = _option("off", "off|side|difference")  # with `other`: side by side, or the difference
    other: str = _option("none", rf"[01]\.{_HEAD}|none")  # input, layer and head compared with ("1.2.5")
    # order of the grid: by layer, a measure, or the change between two inputs
    sort: str = _option("layer", "layer|changed|" + "|".join(MEASURES))
    filter: str = _option("", r"[\w .<>=,;、-]{0,40}")  # which heads the grid shows ("previous > 0.5")
    # which links are drawn: those from a weight on ("w0.05") or the strongest of each query ("k3")
    links: str = _option("w0.1", r"w[01](?:\.[0-9]{1,4})?|k[0-9]{1,2}")
    patches: str = _option("exact", "exact|smooth|off")  # how attention lies over a picture: squares, smoothed
    # the whole, or first row, first column, rows and columns of the part shown ("128.0.64.64")
    zoom: str = _option("whole", r"whole|[0-9]{1,6}\.[0-9]{1,6}\.[0-9]{1,6}\.[0-9]{1,6}")

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not re.fullmatch(ALLOWED[name], value):
                raise ValueError(f"{name}: expected {ALLOWED[name]}, got {value!r}")

    def changes_from(self, before: "DisplayOptions") -> dict[str, str]:
        """The options that differ from others, by name."""
        return {name: value for name, value in asdict(self).items() if value != getattr(before, name)}


ALLOWED: dict[str, str] = {option.name: option.metadata["allowed"] for option in fields(DisplayOptions)}
"""The pattern of each option."""


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
        if group is None or (self.display.mode == "picture" and group.image is None):
            return False
        heads = {(self.layer, self.head), *chosen_heads(self.display.heads)}
        return heads <= {*group.heads} and len(self.pins) <= MAX_PINS and has_pins(group, self.pins)


def open_group(groups: Sequence[MapGroup], state: ViewState) -> MapGroup:
    """The kind of maps that is open; ValueError if these groups lack it."""
    group = next((group for group in groups if group.id == state.group), None)
    if group is None:
        raise ValueError(f"state: expected one of {', '.join(each.id for each in groups)}, got {state.group}")
    return group


def over_picture(group: MapGroup) -> ViewState:
    """The head over the picture whose pattern is easiest to name, as the patch that shows it best; or the middle layer.

    That patch spreads most weight over other patches nearby: it has the largest sum_j sqrt(w_ij) over them.
    """
    display = DisplayOptions(mode="picture", scale="linear")
    layer, head = group.clearest or (len(group.calls) // 2, 0)
    if group.clearest is None or group.image is None or not group.image.of_queries:
        return ViewState(group.id, layer, head, display=display)
    special = group.image.num_special
    distances = Patches(group.image.grid, special).distances
    weights = group.calls[layer].weights(head=head)[0][special:, special:]
    nearby = (weights.sqrt() * ((distances > 0) & (distances <= RADIUS)).to(weights)).sum(dim=-1)
    return ViewState(group.id, layer, head, (Pin("query", special + int(nearby.argmax())),), display)


def has_pins(group: MapGroup, pins: Sequence[Pin]) -> bool:
    """Whether a group has these tokens, all on one side."""
    sizes = {"query": len(group.query_tokens), "key": len(group.key_tokens)}
    return len({pin.axis for pin in pins}) <= 1 and all(0 <= pin.index < sizes[pin.axis] for pin in pins)


def chosen_heads(heads: str) -> list[tuple[int, int]]:
    """Layer and head of each in "2.1_2.3"; none for "one", "layer" and "all"."""
    return [(int(layer), int(head)) for layer, head in re.findall(r"(\d+)\.(\d+)", heads)]


def read_display(words: Mapping[str, object], default: DisplayOptions) -> tuple[DisplayOptions, bool]:
    """Return the options that these strings name, and whether all were valid; the rest as in `default`."""
    good = {
        name: value
        for name, value in words.items()
        if name in ALLOWED and isinstance(value, str) and re.fullmatch(ALLOWED[name], value)
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


def site_of_state(groups: Sequence[MapGroup], state: ViewState) -> str:
    """The site of the call whose head is open."""
    return open_group(groups, state).calls[state.layer].site


def reopened(
    groups: Sequence[MapGroup],
    state: ViewState,
    *,
    site: str | None = None,
    head: int | None = None,
    pins: object = None,
    display: object = None,
) -> ViewState:
    """Return the state with some of site, head, pins and display options replaced.

    Another kind of map has other tokens: pins, and what of the look names heads or places, do not go along.

    Args:
        site: which call.
        head: which of its heads, counted from 0.
        pins: queries or keys, by their positions from 0: ["q3", "q4"], or "k0".
        display: a `DisplayOptions`, or the fields of it that change.
    """
    wanted = site_of_state(groups, state) if site is None else site
    group, layer = _find(groups, state, wanted)
    if group.id != state.group:
        state = ViewState(group.id, layer, state.head, display=_carried(state.display, group))
    num_heads = group.calls[layer].num_heads
    if head is not None and not is_index(head):
        raise ValueError(f"head: expected 0 to {num_heads - 1} of {wanted}, got {head!r}")
    found = replace(
        state,
        layer=layer,
        head=state.head if head is None else int(head),
        pins=state.pins if pins is None else _pins(pins, group),
        display=state.display if display is None else _display(state.display, display),
    )
    if not 0 <= found.head < num_heads:
        raise ValueError(f"head: expected 0 to {num_heads - 1} of {wanted}, got {found.head}")
    if not found.fits(groups):
        raise ValueError(
            f"display: expected one of heads that there are, over a picture only where one is, got {display}"
        )
    return found


def _find(groups: Sequence[MapGroup], state: ViewState, site: str) -> tuple[MapGroup, int]:
    """Group and layer of a site; those that are open, where several groups show it."""
    for group in sorted(groups, key=lambda group: group.id != state.group):
        layers = [layer for layer, call in enumerate(group.calls) if call.site == site]
        if layers:
            return group, state.layer if state.layer in layers and group.id == state.group else layers[0]
    there = ", ".join(call.site for group in groups for call in group.calls)
    raise ValueError(f"site: expected one of {there}, got {site!r}")


def _carried(display: DisplayOptions, group: MapGroup) -> DisplayOptions:
    """Display options for another kind of map, without those that belong to the old one."""
    mode = "map" if display.mode == "picture" and group.image is None else display.mode
    return replace(display, mode=mode, zoom="whole", heads="one", compare="off", other="none", filter="", sort="layer")


def _pins(pins: object, group: MapGroup) -> tuple[Pin, ...]:
    given = [pins] if isinstance(pins, str) or not isinstance(pins, Iterable) else list(pins)
    found = read_pins(".".join(map(str, given))) if given else ()
    if found is None or not has_pins(group, found):
        there = f"'q0' to 'q{len(group.query_tokens) - 1}', or 'k0' to 'k{len(group.key_tokens) - 1}'"
        raise ValueError(f"pins: expected {there}, all on one side, got {pins!r}")
    return found


def _display(now: DisplayOptions, wanted: object) -> DisplayOptions:
    if isinstance(wanted, DisplayOptions):
        return wanted
    if not isinstance(wanted, Mapping):
        raise ValueError(
            f"display: expected DisplayOptions or some of its fields, as {{'scale': 'log'}}, got {wanted!r}"
        )
    if unknown := [name for name in wanted if name not in ALLOWED]:
        raise ValueError(f"display: expected some of {', '.join(ALLOWED)}, got {', '.join(map(str, unknown))}")
    return replace(now, **{name: str(value) for name, value in wanted.items()})
