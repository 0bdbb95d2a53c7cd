"""What a scan is to measure, and what it found: values of every head over texts, with quantiles and intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float, Int

from viz_core.maps.register import ROLES, surest_role

if TYPE_CHECKING:
    import pandas

from collections.abc import Callable, Iterable, Mapping

import torch
from jaxtyping import Bool
from torch import Tensor

from viz_core.hub.runs.run import Maps
from viz_core.maps.head_measure import Measure
from viz_core.maps.register import MEASURES

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

        ValueError if a target is not among the keys, or a position is not in the text.

        Args:
            pairs: query and key, positions among all tokens; a query may have several keys.
            keys: positions of the span that the keys are chosen from.
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


Line: TypeAlias = dict[str, Any]
"""Of one text: by kind of maps its heads and, by measure, (3, heads): value, chance and query. Or an error."""

PERCENTILES = (5, 50, 95, 100)
ROUNDS = 1000
"""Bootstrap samples of texts."""


class Summary(NamedTuple):
    """A measure of every head over the texts in which it is defined; NaN where there is none."""

    mean: Float[np.ndarray, " heads"]
    low: Float[np.ndarray, " heads"]  # 95% interval of the mean: percentiles of bootstrap samples of at least 2 texts
    high: Float[np.ndarray, " heads"]
    quantiles: Float[np.ndarray, "4 heads"]  # at `PERCENTILES` of texts
    chance: Float[np.ndarray, " heads"]  # mean for uniform attention over visible keys; NaN for what is not a role
    texts: Int[np.ndarray, " heads"]


class Example(NamedTuple):
    """The text at a percentile of a head's values, and the query in it with the largest value of its own."""

    percentile: int
    value: float  # of the text
    text: int  # its number; of induction, that of a random sequence
    query: int  # -1 where there is none, as for worth


@dataclass(frozen=True, eq=False)
class KindScan:
    """The heads of one kind of maps."""

    heads: tuple[tuple[int, int], ...]  # layer and head, both from 0, in the order of all that follows
    measured: dict[str, Float[np.ndarray, "texts 3 heads"]]  # value, chance and query by measure, role or "worth"

    @property
    def values(self) -> dict[str, Float[np.ndarray, "texts heads"]]:
        """Values by measure, role or "worth"."""
        return {name: found[:, 0] for name, found in self.measured.items()}

    def summary(self, name: str) -> Summary:
        """Return means, intervals and quantiles of a measure; ValueError if it was not measured."""
        values, chance, _ = self._of(name).swapaxes(0, 1)
        counts = (~np.isnan(values)).sum(axis=0)
        draws = np.random.default_rng(0).multinomial(n := len(values), np.full(n, 1 / n), size=ROUNDS).astype(float)
        found, seen = np.full((4 + len(PERCENTILES), len(counts)), np.nan), counts > 0
        with np.errstate(invalid="ignore", divide="ignore"):
            means = (draws @ np.nan_to_num(values)) / (draws @ ~np.isnan(values))
        found[0, seen] = np.nanmean(values[:, seen], axis=0)
        found[1:3, counts > 1] = np.nanpercentile(means[:, counts > 1], [2.5, 97.5], axis=0)
        known = ~np.isnan(chance).all(axis=0)
        found[3, known] = np.nanmean(chance[:, known], axis=0)
        found[4:, seen] = np.nanpercentile(values[:, seen], PERCENTILES, axis=0)
        return Summary(found[0], found[1], found[2], found[4:], found[3], counts)

    def examples(self, place: int, name: str) -> tuple[Example, ...]:
        """Return the text at each of `PERCENTILES` of a head's values, by nearest rank; () where it has none."""
        values, _, queries = self._of(name)[:, :, place].T
        order = [int(text) for text in np.argsort(values, kind="stable") if not np.isnan(values[text])]
        ranks = [(percent, order[max(0, -(-percent * len(order) // 100) - 1)]) for percent in PERCENTILES if order]
        return tuple(Example(percent, float(values[text]), text, int(queries[text])) for percent, text in ranks)

    def role_of(self, place: int) -> tuple[str, float] | None:
        """Return a head's role and its mean share beyond chance (`surest_role`); targets of one's own are roles too."""
        found = {name: self.summary(name) for name in self.measured if self._is_role(name)}
        return surest_role({k: (one.mean[place], one.low[place], one.chance[place]) for k, one in found.items()})

    def frame(self) -> "pandas.DataFrame":
        """Return a row for each head and measure: mean, interval, chance, texts and percentiles.

        Columns: layer, head (both from 0), measure, mean, low, high, chance, texts, p5, p50, p95, p100.
        """
        import pandas as pd

        layers, heads = np.array(self.heads).T
        parts = []
        for name in self.measured:
            found = self.summary(name)
            columns: dict[str, Any] = {"layer": layers, "head": heads, "measure": name}
            columns |= {field: getattr(found, field) for field in ("mean", "low", "high", "chance", "texts")}
            columns |= {f"p{percent}": values for percent, values in zip(PERCENTILES, found.quantiles, strict=True)}
            parts.append(pd.DataFrame(columns))
        return pd.concat(parts, ignore_index=True)

    def _is_role(self, name: str) -> bool:
        """Whether it is a share of attention on targets: what has a chance, but for choices of the strongest key."""
        return name in ROLES or not (name.endswith(STRONGEST) or np.isnan(self.measured[name][:, 1]).all())

    def _of(self, name: str) -> Float[np.ndarray, "texts 3 heads"]:
        if name not in self.measured:
            raise ValueError(f"name: expected one of {', '.join(self.measured)}, got {name!r}")
        return self.measured[name]


@dataclass(frozen=True, eq=False)
class Scan:
    """Every head over some texts."""

    kinds: dict[str, KindScan]  # by kind of maps ("encoder-self", "decoder-self", "decoder-cross")
    texts: int
    tokens: int
    left_out: tuple[tuple[int, Any], ...]  # texts that could not be read: their number, and why
    alone: bool  # whether texts had to be run one by one, as padding changed the weights of a first one

    def frame(self) -> "pandas.DataFrame":
        """Return `KindScan.frame` of all kinds, with a first column `kind`."""
        import pandas as pd

        return pd.concat([each.frame().assign(kind=name) for name, each in self.kinds.items()], ignore_index=True)

    @classmethod
    def of(cls, lines: Sequence[Line], repeats: Sequence[Line] = ()) -> "Scan":
        """Gather the lines of texts and those of random sequences."""
        kinds = {}
        for kind in dict.fromkeys(name for line in lines for name in line.get("kinds", ())):
            sets = [[line.get("kinds", {}).get(kind) for line in each] for each in (lines, repeats)]
            heads = next(text["heads"] for text in sets[0] if text)
            if any(text["heads"] != heads for texts in sets for text in texts if text):
                raise ValueError(f"expected the same heads of {kind} for all texts, got others")
            gap, measured = np.repeat([[np.nan], [np.nan], [-1]], len(heads), axis=1), {}
            for texts in sets:
                for name in dict.fromkeys(name for text in texts if text for name in text["measures"]):
                    found = [text["measures"].get(name, gap) if text else gap for text in texts]
                    measured[name] = np.array(found, dtype=float)
            kinds[kind] = KindScan(tuple((layer, head) for layer, head in heads), measured)
        left_out = tuple((number, line["error"]) for number, line in enumerate(lines) if "error" in line)
        tokens = sum(line.get("tokens", 0) for line in lines)
        return cls(kinds, len(lines) - len(left_out), tokens, left_out, any(line["alone"] for line in lines))
