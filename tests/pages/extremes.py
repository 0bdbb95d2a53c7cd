"""Addresses at their extremes: every control of a page, read from the page itself, at its largest or smallest value."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

WORD = "international "
"""Few tokens for its letters: texts of it have the most letters that a model takes."""

LONGEST = 1980  # letters: the limit is 2,000
_NOT_PAGES = ("language-switch", "open-all", "tour", "present")
_BREAKS = "-break"  # something broken hides what is costly, and has cases of its own


def key_of(proto: Any) -> str:
    """Return the key of a control: its query parameter; "" where it has none."""
    _, _, key = getattr(proto, "id", "").partition("-")
    key = key.partition("-")[2]
    return "" if key == "None" else key


def extreme(kind: str, proto: Any, largest: bool) -> str | None:
    """Return what an address says for one extreme of a control; None for what no address holds.

    Each text is another one: what was computed for the first is cached.
    """
    place = -1 if largest else 0
    if kind in ("slider", "number_input"):
        options = list(getattr(proto, "options", ()))
        number = proto.max if largest else proto.min
        return options[int(number)] if options else f"{number:.10g}"
    if kind in ("selectbox", "radio", "multiselect"):
        return proto.options[place] if proto.options else None
    if kind == "button_group":
        return proto.options[place].content if proto.options else None
    if kind in ("toggle", "checkbox"):
        return "true" if largest else "false"
    if kind in ("text_input", "text_area"):
        return f"{key_of(proto)} {WORD * LONGEST}"[: proto.max_chars or LONGEST] if largest else "a"
    return None


def at_extremes(controls: Iterable[tuple[str, Any]], known: Mapping[str, str], largest: bool) -> dict[str, str]:
    """Return the parameters of these controls (their kind and message) that are not yet known."""
    found = {}
    for kind, proto in controls:
        key = key_of(proto)
        if not key or key in known or key in _NOT_PAGES or _BREAKS in key or "-guess" in key:
            continue
        value = extreme(kind, proto, largest)
        if value is not None:
            found[key] = value
    return found


def links(
    read: Callable[[Mapping[str, str]], Iterable[tuple[str, Any]]], largest: bool, rounds: int = 4
) -> Iterator[Mapping[str, str]]:
    """Yield addresses of a page with more and more of its controls at an extreme, the last with all of them.

    Args:
        read: opens the page with these parameters and returns its controls; some appear with the value of another.
    """
    known: dict[str, str] = {"open-all": "true"}
    for _ in range(rounds):
        yield known
        more = at_extremes(read(known), known, largest)
        if not more:
            return
        known = known | more
