"""What a scan found: values of every head over texts, with quantiles, bootstrap intervals and examples."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from jaxtyping import Float, Int

from viz_core.lab.scan_targets import STRONGEST
from viz_core.maps.register import ROLES, surest_role

if TYPE_CHECKING:
    import pandas

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
