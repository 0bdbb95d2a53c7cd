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


HEAD = ("what", "ours", "peer", "peer / ours", "target", "met")


def text_table(rows: Sequence[Row]) -> str:
    """Medians, spreads (smallest to largest), ratio, target and whether it was met, in aligned columns."""
    lines = [HEAD, *(_cells(row) for row in rows)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEAD))]
    printed = [
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    ]
    return "\n".join([printed[0], "-" * len(printed[0]), *printed[1:]])


def markdown_table(rows: Sequence[Row]) -> str:
    """The same as a Markdown table."""
    lines = [HEAD, ("---", "---", "---", "--:", "---", "---"), *(_cells(row) for row in rows)]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


def _cells(row: Row) -> tuple[str, ...]:
    ours = _spread(row.ours, row.unit) or row.note
    peer = _spread(row.peer, row.unit) or (row.note if row.ours else "")
    return (
        row.what,
        ours,
        f"{row.peer_name}: {peer}" if row.peer_name else peer,
        "" if row.ratio is None else number(row.ratio),
        _target(row),
        {None: "", True: "yes", False: "NO"}[row.met],
    )


def number(value: float) -> str:
    """Three digits that count, and no more than a reader needs: 1,234, 12.3, 1.23, 0.123."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value else "0"


def _spread(samples: Sequence[float], unit: str) -> str:
    if not samples:
        return ""
    median = f"{number(statistics.median(samples))} {unit}"
    low, high = number(min(samples)), number(max(samples))
    return median if low == high else f"{median} ({low} to {high})"


def _target(row: Row) -> str:
    if row.target is None:
        return ""
    return f"<= {row.target:g} x {row.peer_name}" if row.relative else f"<= {row.target:g} {row.unit}"
