"""Names of heads: "cross-3.5" in links is "head 5 of layer 3" on the page, "cross-3" the whole layer."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from ui.text.words import TEXT, current_language, load_words

if TYPE_CHECKING:  # it brings torch, which home need not wait for
    from viz_core.trace import AttentionCall, HeadsOff
    from viz_core.view.map_group import MapGroup


def layer_name(site: str) -> str:
    """The name of a layer of attention that the library knows by its site: "decoder.2.cross" is "cross-3"."""
    stack, layer, kind = site.split(".")
    return f"{kind if kind == 'cross' else stack}-{int(layer) + 1}"


def head_name(site: str, head: int) -> str:
    """The name of a head that the library knows by its site and number."""
    return f"{layer_name(site)}.{head + 1}"


def head_title(name: str, with_kind: bool = True) -> str:
    """Return a head or a layer, named as in links, in words: "head 5 of layer 3 (cross-attention)".

    Args:
        with_kind: whether the kind of attention is told, where several have a layer of this number.
    """
    return _head_title(TEXT, name, with_kind, current_language())


@lru_cache(maxsize=256)
def _head_title(_folder: Path, name: str, with_kind: bool, language: str) -> str:
    """The same, for a language: a list of all heads of a model has it a hundred times."""
    words = load_words("common", language)
    kind, _, place = name.partition("-")
    layer, _, head = place.partition(".")
    title = words("head-title", layer=layer, head=head) if head else words("layer-title", layer=layer)
    kinds = words.group("head-kind")
    return words("with-kind", title=title, kind=kinds[kind]) if with_kind and kind in kinds else title


def head_place(layer: object, head: object) -> str:
    """Return "layer 2, head 3"; a placeholder of plotly's may stand for a number."""
    return load_words("common")("head-named", layer=layer, head=head)


def pattern_word(pattern: str, language: str) -> str:
    """Return the word for a pattern of heads (`viz_core.maps.fingerprints`): "previous token"."""
    words = load_words("attention-view", language)
    own = f"pattern_{pattern}"
    return words(own if words.has(own) else f"measure_{pattern}")


def layer_place(layer: object) -> str:
    """Return "layer 2"."""
    return load_words("common")("layer-title", layer=layer)


def head_number(head: object) -> str:
    """Return "head 3"."""
    return load_words("common")("head-number", head=head)


def places_of(heads: Collection[tuple[str, int]], groups: Iterable[MapGroup]) -> list[str]:
    """These heads as the attention view has them: "cross.2.4" is group, layer and head from 0."""
    return [
        f"{group.id}.{layer}.{head}"
        for group in groups
        for layer, call in enumerate(group.calls)
        for head in range(call.num_heads)
        if (call.site, head) in heads
    ]


def head_at(place: object, groups: Iterable[MapGroup]) -> tuple[str, int] | None:
    """Site and number of a head that the view names so; None where it is no such name, whoever sent it."""
    if not isinstance(place, str):
        return None
    for group in groups:
        for layer, call in enumerate(group.calls):
            for head in range(call.num_heads):
                if place == f"{group.id}.{layer}.{head}":
                    return call.site, head
    return None


@dataclass(frozen=True)
class HeadNames:
    """All heads of a model by name.

    Attributes:
        sites: each with its number of heads, in the order of the model.
    """

    sites: tuple[tuple[str, int], ...]

    @classmethod
    def of(cls, calls: Iterable[AttentionCall]) -> HeadNames:
        """Those that a recording has."""
        return cls(tuple((call.site, call.num_heads) for call in calls))

    @property
    def every(self) -> tuple[str, ...]:
        """The names of all heads, and before those of a layer that of the layer."""
        names = []
        for site, count in self.sites:
            names += [layer_name(site), *(head_name(site, head) for head in range(count))]
        return tuple(names)

    def read(self, names: Iterable[str]) -> HeadsOff:
        """The heads that these names mean, in the model's order, each once."""
        known: dict[str, list[tuple[str, int]]] = {}
        for site, count in self.sites:
            known[layer_name(site)] = [(site, head) for head in range(count)]
            known |= {head_name(site, head): [(site, head)] for head in range(count)}
        return self._ordered({head for name in names for head in known[name]})

    def write(self, heads: Collection[tuple[str, int]]) -> list[str]:
        """Shortest list of names for these heads."""
        names: list[str] = []
        for site, count in self.sites:
            here = [head for head in range(count) if (site, head) in heads]
            names += [layer_name(site)] if len(here) == count else [head_name(site, head) for head in here]
        return names

    def toggled(self, names: Iterable[str], site: str, head: int) -> list[str]:
        """The names of the heads that are off, once this one is switched off, or on again."""
        return self.write(set(self.read(names)) ^ {(site, head)})

    def but(self, site: str, head: int, of_layer: bool) -> list[str]:
        """The names of all heads but this one, of its layer or of the whole model."""
        others = {(other, h) for other, count in self.sites for h in range(count) if other == site or not of_layer}
        return self.write(others - {(site, head)})

    def _ordered(self, heads: Collection[tuple[str, int]]) -> HeadsOff:
        return tuple((site, head) for site, count in self.sites for head in range(count) if (site, head) in heads)


def head_link(group: str, layer: int, head: int, name: str = "") -> str:
    """Return a head's name as a Markdown link; a click opens it in the page's attention view (head_links.js).

    Args:
        group: the kind of maps that contains it.
        layer: and head, from 0.
        name: "layer 2, head 3" unless given.
    """
    name = name or load_words("common")("head-named", layer=layer + 1, head=head + 1)
    return f"[{name}](#head={group}.{layer}.{head})"
