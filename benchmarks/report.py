"""What a benchmark reports, and how it is printed and kept."""

from __future__ import annotations

import json
import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"


@dataclass(frozen=True)
class Row:
    """One quantity, measured of us and of a peer in the same run; smaller is better."""

    what: str
    unit: str  # "s" or "MB"
    ours: tuple[float, ...]
    peer_name: str
    peer: tuple[float, ...]
    target: float  # our median must not be above it

    @property
    def median(self) -> float:
        return statistics.median(self.ours)

    @property
    def peer_median(self) -> float:
        return statistics.median(self.peer)

    @property
    def ratio(self) -> float:
        """How many times the peer's median is ours."""
        return self.peer_median / self.median

    @property
    def met(self) -> bool:
        return self.median <= self.target


def table(rows: Sequence[Row]) -> str:
    """The rows with medians, spreads (smallest to largest), ratio, target and whether it was met."""
    head = ("what", "ours", "peer", "peer / ours", "target", "met")
    body = [
        (
            row.what,
            _spread(row.ours, row.unit),
            f"{row.peer_name} {_spread(row.peer, row.unit)}",
            f"{row.ratio:.1f}",
            f"<= {row.target:g} {row.unit}",
            "yes" if row.met else "NO",
        )
        for row in rows
    ]
    widths = [max(len(line[i]) for line in [head, *body]) for i in range(len(head))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in [head, *body]]
    return "\n".join([lines[0], "-" * len(lines[0]), *lines[1:]])


def save(name: str, rows: Sequence[Row]) -> Path:
    """Every sample, with the machine and the date, as benchmarks/results/NAME.json."""
    content = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": machine(),
        "rows": [
            {**asdict(row), "median": row.median, "peer_median": row.peer_median, "ratio": row.ratio, "met": row.met}
            for row in rows
        ],
    }
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return path


def machine() -> dict[str, Any]:
    """What the numbers depend on. A load near the number of cores says that something else was running."""
    return {
        "system": platform.platform(terse=True),
        "python": platform.python_version(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None,
    }


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.is_file() else []
    return next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())


def _spread(samples: Sequence[float], unit: str) -> str:
    return f"{statistics.median(samples):.3f} {unit} ({min(samples):.3f} to {max(samples):.3f})"
