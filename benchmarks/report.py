"""What a benchmark reports, and how it is kept."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"


@dataclass(frozen=True)
class Row:
    """One quantity, measured of us and of a peer in the same run; smaller is better.

    Attributes:
        what: the quantity.
        unit: "s", "ms", "MB", "nodes" or what else is counted.
        ours: our samples; none where there was no number, and `note` says why.
        peer_name: name of the peer that is compared; "" for none.
        peer: its samples; none where there was no number, and `note` says why.
        target: our median must not be above it.
        relative: the target counts in medians of the peer, not in units.
        headline: listed first in docs/benchmarks.md, with the rows that have a target.
        note: why a number is missing.
    """

    what: str
    unit: str
    ours: tuple[float, ...]
    peer_name: str = ""
    peer: tuple[float, ...] = ()
    target: float | None = None
    relative: bool = False
    headline: bool = False
    note: str = ""

    def __post_init__(self) -> None:
        if self.relative and (self.target is None or not self.peer_name):
            raise ValueError(f"{self.what}: a relative target needs a target and a peer")

    @property
    def median(self) -> float | None:
        return statistics.median(self.ours) if self.ours else None

    @property
    def peer_median(self) -> float | None:
        return statistics.median(self.peer) if self.peer else None

    @property
    def ratio(self) -> float | None:
        """How many times our median the peer's is; None where either is missing or ours is 0."""
        if self.peer_median is None or not self.median:
            return None
        return self.peer_median / self.median

    @property
    def met(self) -> bool | None:
        """Whether the target was met; None where there is none. What has no number did not meet it."""
        if self.target is None:
            return None
        limit = self.target if not self.relative else self._times_peer(self.target)
        return self.median is not None and limit is not None and self.median <= limit

    def _times_peer(self, factor: float) -> float | None:
        return None if self.peer_median is None else factor * self.peer_median


@dataclass(frozen=True)
class Result:
    """The rows of one part, and where and when they were measured."""

    part: str
    date: str
    machine: dict[str, Any]
    rows: tuple[Row, ...]


def save(part: str, rows: Sequence[Row], device: str = "cpu", folder: Path | None = None) -> Path:
    """Every sample, with the machine and the date, as PART.json; PART-cuda.json where it ran on a GPU."""
    folder = folder or RESULTS
    derived = ("median", "peer_median", "ratio", "met")
    content = {
        "part": part,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(device),
        "rows": [asdict(row) | {name: getattr(row, name) for name in derived} for row in rows],
    }
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / (f"{part}.json" if device == "cpu" else f"{part}-{device}.json")
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return path


def read(path: Path) -> Result:
    """A saved result; what can be worked out again is not read."""
    content = json.loads(path.read_text(encoding="utf-8"))
    names = {field.name for field in fields(Row)}
    rows = []
    for stored in content["rows"]:
        known = {name: value for name, value in stored.items() if name in names}
        rows.append(Row(**known | {"ours": tuple(stored["ours"]), "peer": tuple(stored["peer"])}))
    return Result(content.get("part", path.stem), content["date"], content["machine"], tuple(rows))


def machine(device: str = "cpu") -> dict[str, Any]:
    """What the numbers depend on. A load near the number of cores says that something else was running."""
    found = {
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
    }
    if device == "cuda":
        import torch

        found["gpu"] = torch.cuda.get_device_name()
    return found


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
