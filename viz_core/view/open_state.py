"""What is open, in Python's terms: site, head counted from 0, pins and display options."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from viz_core.trace.arguments import is_index
from viz_core.view.map_group import MapGroup
from viz_core.view.requests import Pin, read_pins
from viz_core.view.state import ALLOWED, DisplayOptions, ViewState, has_pins, open_group


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
    mode = "map" if display.mode == "picture" and group.seen is None else display.mode
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
