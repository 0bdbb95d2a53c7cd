"""What a scan found: values of every head over texts, with quantiles, bootstrap intervals and examples."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float, Int

from viz_core.maps.roles import ROLES, SURE, beyond_chance

Line: TypeAlias = dict[str, Any]
PERCENTILES = (5, 50, 95, 100)
_ROUNDS = 1000


class Summary(NamedTuple):
    """A measure of every head over the texts in which it is defined; NaN where there is none."""

    mean: Float[np.ndarray, " heads"]
    low: Float[np.ndarray, " heads"]  # 95% interval of the mean: percentiles of 1,000 bootstrap samples of texts
    high: Float[np.ndarray, " heads"]
    quantiles: Float[np.ndarray, "4 heads"]  # at `PERCENTILES` of texts
    chance: Float[np.ndarray, " heads"]  # mean for uniform attention over visible keys; NaN for what is no role
    texts: Int[np.ndarray, " heads"]


class Example(NamedTuple):
    """The text at a percentile of a head's values, and the query in it with the largest value of its own."""

    percentile: int
    value: float  # of the text
    text: int  # its number; of induction, that of a random sequence
    query: int  # -1 where there is none, as for worth


@dataclass(frozen=True, eq=False)
class KindScan:
    """The heads of one kind of maps: arrays by the name of a measure, a role, or "worth"."""

    heads: tuple[tuple[int, int], ...]  # layer and head from 0, in the order of all that follows
    values: dict[str, Float[np.ndarray, "texts heads"]]
    chance: dict[str, Float[np.ndarray, "texts heads"]]
    queries: dict[str, Int[np.ndarray, "texts heads"]]

    def summary(self, name: str) -> Summary:
        """Return means, intervals and quantiles of a measure; ValueError if it was not measured."""
        values, chance = self._values(name), self.chance.get(name)
        counts = (~np.isnan(values)).sum(axis=0)
        draws = np.random.default_rng(0).multinomial(n := len(values), np.full(n, 1 / n), size=_ROUNDS).astype(float)
        with np.errstate(invalid="ignore", divide="ignore"):
            means = (draws @ np.nan_to_num(values)) / (draws @ ~np.isnan(values))
            low, high = np.nanpercentile(means[:, counts > 0], [2.5, 97.5], axis=0)
        found = np.full((3 + len(PERCENTILES), len(counts)), np.nan)
        seen = counts > 0
        found[0, seen], found[1, seen], found[2, seen] = np.nanmean(values[:, seen], axis=0), low, high
        found[3:, seen] = np.nanpercentile(values[:, seen], PERCENTILES, axis=0)
        by_chance = np.full(len(counts), np.nan)
        if chance is not None and (known := ~np.isnan(chance).all(axis=0)).any():
            by_chance[known] = np.nanmean(chance[:, known], axis=0)
        return Summary(found[0], found[1], found[2], found[3:], by_chance, counts)

    def examples(self, place: int, name: str) -> tuple[Example, ...]:
        """Return the text at each of `PERCENTILES` of a head's values, by nearest rank; () where it has none."""
        values = self._values(name)[:, place]
        order = [int(text) for text in np.argsort(values, kind="stable") if not np.isnan(values[text])]
        ranks = [(percent, order[max(0, -(-percent * len(order) // 100) - 1)]) for percent in PERCENTILES if order]
        queries = self.queries.get(name, np.full_like(self.values[name], -1))
        return tuple(Example(percent, float(values[text]), text, int(queries[text, place])) for percent, text in ranks)

    def role_of(self, place: int) -> tuple[str, float] | None:
        """Return the role with a head's most attention beyond chance, and how much, if the low end is at least 0.5."""
        found = [(name, self.summary(name)) for name in ROLES if name in self.values]
        sure = {name: beyond_chance(float(one.low[place]), float(one.chance[place])) for name, one in found}
        best = max((name for name in sure if sure[name] >= SURE), key=lambda name: sure[name], default=None)
        means = {name: beyond_chance(float(one.mean[place]), float(one.chance[place])) for name, one in found}
        return None if best is None else (best, means[best])

    def _values(self, name: str) -> Float[np.ndarray, "texts heads"]:
        if name not in self.values:
            raise ValueError(f"name: expected one of {', '.join(self.values)}, got {name!r}")
        return self.values[name]


@dataclass(frozen=True, eq=False)
class Scan:
    """Every head over some texts."""

    kinds: dict[str, KindScan]  # by kind of maps ("encoder-self", "decoder-self", "decoder-cross")
    texts: int
    tokens: int
    left_out: tuple[tuple[int, str], ...]  # texts that could not be read: their number, and why
    alone: bool  # whether texts had to be run one by one, as padding changed the weights of a first one

    @classmethod
    def of(cls, lines: Sequence[Line], repeats: Sequence[Line]) -> "Scan":
        """Gather the lines of texts and those of random sequences."""
        names = dict.fromkeys(name for line in lines for name in line.get("kinds", ()))
        kinds = {}
        for kind in names:
            texts, random = ([line.get("kinds", {}).get(kind) for line in each] for each in (lines, repeats))
            heads = next(text["heads"] for text in texts if text)
            if any(text["heads"] != heads for text in (*texts, *random) if text):
                raise ValueError(f"expected the same heads of {kind} for all texts, got others")
            parts = [_gathered(texts, part, len(heads)) for part in ("values", "chance", "queries")]
            more = [_gathered(random, part, len(heads)) for part in ("values", "chance", "queries")]
            both = [one | two for one, two in zip(parts, more, strict=True)]
            kinds[kind] = KindScan(tuple((layer, head) for layer, head in heads), *both)
        left_out = tuple((number, line["error"]) for number, line in enumerate(lines) if "error" in line)
        tokens = sum(line.get("tokens", 0) for line in lines)
        return cls(kinds, len(lines) - len(left_out), tokens, left_out, any(line["alone"] for line in lines))

    def table(self) -> Iterator[dict[str, Any]]:
        """A row for each kind, head and measure, layers and heads counted from 1."""
        for kind, found in self.kinds.items():
            for name in found.values:
                one = found.summary(name)
                for place, (layer, head) in enumerate(found.heads):
                    row = {"maps": kind, "layer": layer + 1, "head": head + 1, "measure": name}
                    row |= {part: getattr(one, part)[place] for part in ("mean", "low", "high", "chance", "texts")}
                    yield row | {f"p{p}": v for p, v in zip(PERCENTILES, one.quantiles[:, place], strict=True)}


def side_by_side(narrow: Scan, broad: Scan) -> Iterator[dict[str, Any]]:
    """A row for each head and measure of both: their means, and broad - narrow with its 95% bootstrap interval.

    Texts of both are drawn by themselves: they are no pairs.
    """
    for kind in (kind for kind in narrow.kinds if kind in broad.kinds):
        one, two = narrow.kinds[kind], broad.kinds[kind]
        for name in (name for name in one.values if name in two.values):
            for place, (layer, head) in enumerate(one.heads):
                both = [found.values[name][:, place] for found in (one, two)]
                both = [each[~np.isnan(each)] for each in both]
                if not all(map(len, both)):
                    continue
                rng = np.random.default_rng(0)
                draws = [rng.choice(each, (_ROUNDS, len(each))).mean(axis=1) for each in both]
                low, high = np.percentile(draws[1] - draws[0], [2.5, 97.5])
                means = [float(each.mean()) for each in both]
                row = {"maps": kind, "layer": layer + 1, "head": head + 1, "measure": name}
                row |= {"narrow": means[0], "broad": means[1], "difference": means[1] - means[0]}
                yield row | {"low": float(low), "high": float(high)}


def _gathered(texts: Sequence[Line | None], part: str, heads: int) -> dict[str, np.ndarray]:
    """Arrays (texts, heads) by name; texts without a value have NaN, or -1 for a query."""
    names = dict.fromkeys(name for text in texts if text for name in text[part])
    gap = [-1 if part == "queries" else float("nan")] * heads
    return {name: np.array([(text or {part: {}})[part].get(name, gap) for text in texts]) for name in names}
