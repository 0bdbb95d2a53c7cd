"""Every measure of every head of a shipped model, as `python -m recipes head-scans NAME` wrote it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from viz_core.maps.roles import ROLES, SURE
from viz_core.runtime.assets import ASSETS, reading

FOLDER = ASSETS / "heads"
SETS = ("narrow", "broad")


class Quoted(NamedTuple):
    """A text at a percentile of a head's values, and the query in it with the largest value of its own."""

    percentile: int
    value: float
    text: str
    query: int


@dataclass(frozen=True, eq=False)
class HeadTable:
    """The heads of one kind of maps over one set of texts: parts of a summary by measure, a number a head."""

    heads: tuple[tuple[int, int], ...]  # layer and head from 0
    parts: Mapping[str, Mapping[str, Sequence[float | None]]]
    quoted: Mapping[str, Sequence[Sequence[Quoted]]]

    @property
    def measures(self) -> tuple[str, ...]:
        """Names of what was measured."""
        return tuple(self.parts)

    def part(self, measure: str, part: str) -> Float[np.ndarray, " heads"]:
        """Return "mean", "low", "high", "chance" or a percentile such as "p50" of a measure for every head."""
        return np.array(self.parts[measure][part], dtype=float)

    def plotted(self, measure: str, part: str = "mean", raw: bool = False) -> Float[np.ndarray, " heads"]:
        """Return a part as it is drawn: of a role beyond chance unless `raw`."""
        values = self.part(measure, part)
        chance = self.part(measure, "chance")
        return values if raw or measure not in ROLES else (values - chance) / np.where(chance < 1, 1 - chance, np.nan)

    def role_of(self, place: int) -> tuple[str, float] | None:
        """Return the role with a head's most attention beyond chance, and how much, if the low end is at least 0.5."""
        low = {name: self.plotted(name, "low")[place] for name in ROLES if name in self.parts}
        sure = {name: value for name, value in low.items() if value >= SURE}
        best = max(sure, key=lambda name: sure[name], default=None)
        return None if best is None else (best, float(self.plotted(best)[place]))


@dataclass(frozen=True, eq=False)
class HeadScans:
    """The tables of a model."""

    command: str
    texts: Mapping[str, int]  # by set
    tokens: Mapping[str, int]
    tables: Mapping[tuple[str, str], HeadTable]  # by set and kind of maps

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of maps."""
        return tuple(dict.fromkeys(kind for _, kind in self.tables))


def scanned_models() -> tuple[str, ...]:
    """Return the shipped models that have tables, the writer first."""
    return tuple(sorted((path.stem for path in FOLDER.glob("*.json")), reverse=True))


@lru_cache(maxsize=8)
def head_scans(model: str) -> HeadScans:
    """Return the tables of a shipped model.

    Raises:
        ValueError: if they cannot be read.
    """
    path = FOLDER / f"{model}.json"
    with reading(path):
        content = json.loads(path.read_text(encoding="utf-8"))
        tables = {
            (name, kind): _read_table(entry, name, content["quoted"][name])
            for kind, entry in content["kinds"].items()
            for name in SETS
            if name in entry["measures"]
        }
        return HeadScans(content["command"], content["texts"], content["tokens"], tables)


def _read_table(entry: Mapping[str, Any], name: str, texts: Mapping[str, str]) -> HeadTable:
    quoted = {
        measure: [[Quoted(each[0], each[1], texts[str(each[2])], each[3]) for each in head] for head in heads]
        for measure, heads in entry["examples"][name].items()
    }
    return HeadTable(tuple((layer, head) for layer, head in entry["heads"]), entry["measures"][name], quoted)
