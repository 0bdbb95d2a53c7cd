"""What was measured of each head of a shipped model: its importance, and every measure of its maps.

`python -m recipes head-importance NAME` and `python -m recipes head-scans NAME` wrote it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from jaxtyping import Float

from viz_core.maps.register import ROLES, surest_role
from viz_core.pretrained.bleu import Difference
from viz_core.pretrained.samples import SETS
from viz_core.pretrained.shipped import ModelCard, parsing, read_bytes, read_card
from viz_core.runtime.assets import ASSETS, reading

if TYPE_CHECKING:
    from serving.requests.lab import KindScan

IMPORTANCE = "heads.json"


@dataclass(frozen=True)
class HeadImportance:
    """What the score does without a head, and with no other in its layer; None where that was not measured yet."""

    site: str
    head: int
    without: Difference | None
    alone: Difference | None
    gradient: float  # E_x |d L(x) / d xi_h| (Michel 2019, equation 2)

    @property
    def sure(self) -> bool:
        """Whether the interval of the score without it does not hold 0."""
        return self.without is not None and (self.without.low > 0 or self.without.high < 0)


@dataclass(frozen=True)
class HeadImportances:
    """The measurement of a model, over its whole test split."""

    metric: str  # "bleu" or "accuracy"
    base: float
    examples: int
    heads: tuple[HeadImportance, ...]


def head_importance(name: str, folder: Path | None = None) -> HeadImportances | None:
    """What the heads of a shipped model are worth; None where that was not measured.

    Raises:
        CheckpointError: if there is no such model, or the measurement cannot be read.
    """
    path = (folder or ASSETS / "checkpoints") / name
    return read_importance(path, read_card(path))


def gradient_agreement(measured: HeadImportances) -> float:
    """Spearman's rank correlation of what the score loses without a head and what its gradient says, -1 to 1."""
    both = [(-head.without.value, head.gradient) for head in measured.heads if head.without is not None]
    ranks = np.argsort(np.argsort(np.array(both), axis=0), axis=0)
    costs, gradients = ranks.T
    return float(np.atleast_2d(np.corrcoef(costs, gradients))[0, 1])


def read_importance(folder: Path, card: ModelCard) -> HeadImportances | None:
    """The measurement that lies beside a checkpoint; None where there is none, or one of other weights."""
    path = folder / IMPORTANCE
    if not path.is_file():
        return None
    with parsing(path):
        content = json.loads(read_bytes(path))
        if content["sha256"] != card.config.get("sha256"):
            return None
        heads = tuple(
            HeadImportance(
                h["site"], h["head"], _difference(h.get("without")), _difference(h.get("alone")), h["gradient"]
            )
            for h in content["heads"]
        )
        return HeadImportances(content["metric"], content["base"], content["examples"], heads)


def _difference(numbers: list[float] | None) -> Difference | None:
    return None if numbers is None else Difference(*map(float, numbers))


FOLDER = ASSETS / "heads"
PERCENTILES = (5, 50, 95, 100)


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
    parts: Mapping[str, Mapping[str, Sequence[float | None]]]  # None or NaN where there is none
    quoted: Mapping[str, Sequence[Sequence[Quoted]]]

    @property
    def layers(self) -> tuple[int, ...]:
        """Layers with maps, in order, from 0."""
        return tuple(sorted({layer for layer, _ in self.heads}))

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
        """Return a head's role and its mean share beyond chance (`surest_role`)."""
        names = [name for name in ROLES if name in self.parts]
        return surest_role({n: tuple(self.part(n, p)[place] for p in ("mean", "low", "chance")) for n in names})  # type: ignore[misc]


@dataclass(frozen=True, eq=False)
class HeadScans:
    """The tables of a model."""

    command: str  # that made those that are shown
    reads: str  # what goes into the model: "text", "pictures" or "both", as its kind says
    head: str  # its output layer, which decides what worth is
    texts: Mapping[str, int]  # by set
    tokens: Mapping[str, int]
    tables: Mapping[tuple[str, str], HeadTable]  # by set and kind of maps
    left_out: Mapping[str, Sequence[tuple[int, Exception]]] = field(default_factory=dict)  # number, and why, by set

    @property
    def pictures(self) -> bool:
        """Whether the model takes pictures alone."""
        return self.reads == "pictures"

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of maps."""
        return tuple(dict.fromkeys(kind for _, kind in self.tables))

    def __add__(self, other: HeadScans) -> HeadScans:
        """The tables of both, of one model."""
        texts, tokens = {**self.texts, **other.texts}, {**self.tokens, **other.tokens}
        tables, left_out = {**self.tables, **other.tables}, {**self.left_out, **other.left_out}
        return replace(self, texts=texts, tokens=tokens, tables=tables, left_out=left_out)


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
        about = content["command"], "pictures" if content["pictures"] else "text", content["head"]
        return HeadScans(*about, content["texts"], content["tokens"], tables)


def scanned_table(found: KindScan, inputs: Sequence[str]) -> HeadTable:
    """Return the table of a scan of these texts or pictures."""
    parts: dict[str, dict[str, list[float | None]]] = {}
    for name in found.measured:
        one = found.summary(name)
        parts[name] = {part: getattr(one, part).tolist() for part in ("mean", "low", "high", "chance")}
        parts[name] |= {f"p{p}": row.tolist() for p, row in zip(PERCENTILES, one.quantiles, strict=True)}
    quoted = {
        name: [
            [Quoted(one.percentile, one.value, inputs[one.text], one.query) for one in found.examples(place, name)]
            for place in range(len(found.heads))
        ]
        for name in found.measured
        if name != "induction"  # of random tokens
    }
    return HeadTable(found.heads, parts, quoted)


def _read_table(entry: Mapping[str, Any], name: str, texts: Mapping[str, str]) -> HeadTable:
    quoted = {
        measure: [[Quoted(each[0], each[1], texts[str(each[2])], each[3]) for each in head] for head in heads]
        for measure, heads in entry["examples"][name].items()
    }
    return HeadTable(tuple((layer, head) for layer, head in entry["heads"]), entry["measures"][name], quoted)
