"""Roles of one's own in a scan: which keys each query of a text ought to attend to."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from viz_core.hub.runs.run import Maps
from viz_core.maps.head_measure import Measure
from viz_core.maps.register import MEASURES, ROLES

STRONGEST = " strongest"
"""After a target's name: the share of queries whose strongest key is a target."""


@dataclass(frozen=True, eq=False)
class Alignment:
    """Targets of queries in one span of a text within another span, such as products and reactants.

    A scan measures the share of attention on the targets, as for every role, and under the name with " strongest" the
    share of queries whose strongest key among `keys` is a target.
    """

    targets: Bool[Tensor, "queries keys"]
    keys: Bool[Tensor, "queries keys"]  # those that a query chooses from

    @classmethod
    def of(cls, count: int, pairs: Iterable[tuple[int, int]], keys: Iterable[int]) -> "Alignment":
        """Return the alignment of a text of `count` tokens.

        Args:
            pairs: query and key, positions among all tokens; a query may have several keys.
            keys: positions of the span that the keys are chosen from.

        Raises:
            ValueError: if a target is not among the keys, or a position is not in the text.
        """
        targets, among = torch.zeros(count, count, dtype=torch.bool), torch.zeros(count, dtype=torch.bool)
        given, span = list(pairs), sorted(set(keys))
        wrong = [i for i in (*span, *(i for pair in given for i in pair)) if not 0 <= i < count]
        outside = {key for _, key in given} - set(span)
        if wrong or outside:
            raise ValueError(
                f"pairs, keys: expected positions from 0 to {count - 1} and the keys of all pairs among {span}, got "
                f"{(wrong or sorted(outside))[0]}"
            )
        among[span] = True
        for query, key in given:
            targets[query, key] = True
        return cls(targets, among.expand(count, -1))

    def strongest(self, weights: Float[Tensor, "heads queries keys"]) -> tuple[Tensor, float, list[int]]:
        """Return of each head the share of right queries, that of a random choice, and the queries."""
        rows = self.targets.any(dim=-1).nonzero().flatten().tolist()
        choice = weights.masked_fill(~self.keys, -torch.inf)[:, rows].argmax(dim=-1)
        right = self.targets[rows].expand(len(weights), -1, -1).gather(2, choice[..., None])[..., 0]
        chance = (self.targets & self.keys)[rows].sum(dim=-1) / self.keys[rows].sum(dim=-1)
        return right.double().mean(dim=-1), float(chance.mean()), rows


TargetsOf: TypeAlias = Callable[[Maps, Any], Any]
"""From the maps of one kind and the text: a mask (queries, keys) of `maps.query_tokens` and `maps.text_keys`, an
`Alignment`, or None where the text has no targets in these maps."""


@dataclass(frozen=True)
class Wanted:
    """What a scan measures: everything registered, unless names are given, and the caller's own."""

    targets: Mapping[str, TargetsOf]
    names: frozenset[str] | None  # of registered measures and roles
    own: tuple[Measure, ...]

    @classmethod
    def of(cls, targets: Mapping[str, TargetsOf] | None, measures: Iterable[str | Measure] | None) -> "Wanted":
        """Check what `scan` was given; ValueError for a name that is unknown, or taken by a registered measure."""
        given = list(measures) if measures is not None else None
        names = None if given is None else frozenset(each for each in given if isinstance(each, str))
        own = tuple(each for each in given or () if isinstance(each, Measure))
        known = list(dict.fromkeys((*MEASURES, *ROLES)))
        if unknown := sorted((names or frozenset()) - set(known)):
            raise ValueError(f"measures: expected a Measure or one of {', '.join(known)}, got {unknown[0]!r}")
        taken = [each for each in (*(targets or {}), *(each.name for each in own)) if each in (*known, "worth")]
        if taken:
            raise ValueError(f"targets, measures: expected names of your own, got {taken[0]!r}, which is registered")
        return cls(dict(targets or {}), names, own)

    def has(self, name: str) -> bool:
        """Whether a registered measure or role is wanted."""
        return self.names is None or name in self.names

    def targets_in(self, maps: Maps, text: Any) -> dict[str, Alignment | Bool[Tensor, "queries keys"]]:
        """The caller's targets in one text, of the size of its maps."""
        found = dict[str, Any]()
        on_itself = not maps.id.endswith("cross")
        keys = len(maps.text_keys)
        size = (keys if on_itself else len(maps.query_tokens), keys)
        for name, function in self.targets.items():
            targets = function(maps, text)
            if targets is None:
                continue
            mask = targets.targets if isinstance(targets, Alignment) else torch.as_tensor(targets, dtype=torch.bool)
            if tuple(mask.shape) != size:
                raise ValueError(f"targets: expected a mask of {size} from {name!r}, got {tuple(mask.shape)}")
            found[name] = targets if isinstance(targets, Alignment) else mask
        return found
