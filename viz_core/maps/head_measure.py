"""What a measure of heads is: a name, a unit, a range, and sums over rows from which its value follows.

A measure with a target is a role: it is the share of attention on the target, and `viz_core.maps.register` and the site
without a server read the target from here.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from viz_core.maps.measures import Patches, attention_entropy, offset_sum

Unit = Literal["share", "bits", "patches", "positions", "accuracy"]
"""A share is a weight or a sum of weights, 0 to 1; an accuracy is 1 minus an error rate."""


@dataclass(frozen=True)
class MapInfo:
    """What is known of maps besides their weights."""

    # num_queries, num_keys: their size
    num_queries: int
    num_keys: int
    on_itself: bool = True  # whether queries and keys are positions of one sequence
    separators: tuple[int, ...] = ()  # keys that separate or end
    patches: Patches | None = None  # where the tokens lie on a picture; None for text
    rows_sum_to_one: bool = True  # False where a map is the maximum of several heads
    signed: bool = False  # whether weights may be negative and rows need not sum to 1
    decays: bool = False  # whether they are those of a state that decays

    @property
    def is_square(self) -> bool:
        """Whether there is a diagonal: as many queries as keys, of one sequence."""
        return self.on_itself and self.num_queries == self.num_keys

    @property
    def has_neighbours(self) -> bool:
        """Whether tokens have one before and one after; rows of patches that follow each other are not neighbours."""
        return self.is_square and self.num_queries > 1 and self.patches is None


@dataclass(frozen=True, eq=False)
class MapBlock:
    """Some successive rows of the maps of some heads, the first of which is query `first`."""

    weights: Float[Tensor, "heads rows keys"]
    first: int
    info: MapInfo
    log_decay: Float[Tensor, "heads rows"] = field(default_factory=torch.Tensor)  # where a state decays

    @cached_property
    def entropy(self) -> Float[Tensor, "heads rows"]:
        """Entropy of each row in bits, computed once for all measures that need it."""
        return attention_entropy(self.weights)


@dataclass(frozen=True)
class Example:
    """A map small enough to measure by hand, and its value."""

    weights: tuple[tuple[float, ...], ...]
    value: float
    info: MapInfo
    log_decay: tuple[tuple[float, ...], ...] = ()


@dataclass(frozen=True)
class Target:
    """The keys that a role is about: the one at an offset from each query, or the same ones for all queries."""

    offset: int | None = None  # from query to key: -1 the token before, 0 itself, 1 the token after
    keys: Literal["first", "separators"] = "first"  # without an offset

    def applies(self, info: MapInfo) -> bool:
        """Whether such maps have it."""
        if self.offset is None:
            return bool(self.places(info))
        return info.has_neighbours if self.offset else info.is_square

    def places(self, info: MapInfo) -> tuple[int, ...]:
        """Keys that are the target of every query; of a picture, the first one only where it is not a patch."""
        if self.keys == "separators":
            return info.separators
        return (0,) if info.patches is None or info.patches.num_special else ()

    def sums(self, block: MapBlock) -> Float[Tensor, " heads"]:
        """Weight on the target, summed over the rows."""
        if self.offset is not None:
            return offset_sum(block.weights, block.first + self.offset)
        return block.weights[..., list(self.places(block.info))].sum(dim=(-2, -1))

    def value(self, sums: Float[Tensor, " heads"], info: MapInfo) -> Float[Tensor, " heads"]:
        """Mean over the queries that have it."""
        return sums / (info.num_queries - abs(self.offset or 0))

    def mask(self, info: MapInfo) -> Bool[Tensor, "queries keys"]:
        """True where a key is the target of a query."""
        query, key = torch.arange(info.num_queries)[:, None], torch.arange(info.num_keys)
        if self.offset is not None:
            return key == query + self.offset
        return torch.isin(key, torch.tensor(self.places(info))).expand(info.num_queries, -1)


@dataclass(frozen=True)
class Measure:
    """A measure of a head, a number of at least 0, of maps with a softmax or of signed maps.

    Its value follows from sums over rows, so that a long map is measured block by block and never held whole:

        value(sum over blocks of sums(block), info)
    """

    name: str  # in words, links and payloads
    unit: Unit  # of the value
    order: int  # place in lists, ascending
    applies: Callable[[MapInfo], bool]  # whether it is defined for such maps
    maximum: Callable[[MapInfo], float]  # largest value for such maps
    # sums over the rows of a block, (heads,) or (heads, n); None where the value is not computed from a map but was
    # measured for the model
    sums: Callable[[MapBlock], Tensor] | None = None
    # values of the heads from the sums over all rows; their mean over queries unless given
    value: Callable[[Tensor, MapInfo], Tensor] = lambda sums, info: sums / info.num_queries
    signed: bool = False  # whether it is one of signed maps, of which a share of attention says nothing
    # a hand-worked map, which the tests check; None where the value is not computed from a map
    example: Example | None = None
    target: Target | None = None  # of a role
    names_heads: bool = False  # whether a large value says in a word what a head attends to

    def fits(self, info: MapInfo) -> bool:
        """Whether it is defined for such maps, with a softmax or signed."""
        return self.signed == info.signed and self.applies(info)


def role(name: str, order: int, target: Target, example: Example) -> Measure:
    """Return the measure of a role: the mean weight on its target."""
    return Measure(
        name,
        "share",
        order,
        target.applies,
        lambda _: 1.0,
        target.sums,
        target.value,
        example=example,
        target=target,
        names_heads=True,
    )
