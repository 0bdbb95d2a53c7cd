"""What a benchmark reports, how it is kept, and the tables of README.md and docs/benchmarks.md."""

import json
import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "benchmarks" / "results.json"
BEGIN, END = "<!-- benchmarks: written by `make bench` -->", "<!-- end of benchmarks -->"
README = ROOT / "README.md"
DOCUMENT = ROOT / "docs" / "benchmarks.md"
HIGHLIGHTS = (
    ("forward and record, 2,048 tokens", "eager output_attentions"),
    ("stored for viewing, 2,048 tokens", "eager output_attentions"),
    ("12 x 12 heads, 128 tokens: open", "BertViz model_view"),
    ("12 x 12 heads, 128 tokens: on the wire", "BertViz model_view"),
    ("sinusoid heatmap 2,000 x 512, slider to paint", "plotly Heatmap"),
    ("100 visitors at once, 300 answers: 95% of sentences to maps", ""),
)
"""The rows that the README shows: quantity and peer."""


@dataclass(frozen=True)
class Row:
    """One quantity, measured of us and of a peer in the same run; smaller is better."""

    what: str  # the quantity
    unit: str  # "s", "ms", "MB", "nodes" or what else is counted
    ours: tuple[float, ...]  # our samples; none where there was no number, and `note` says why
    peer_name: str = ""  # name of the peer that is compared; "" for none
    peer: tuple[float, ...] = ()  # its samples; none where there was no number, and `note` says why
    target: float | None = None  # our median must not be above it
    relative: bool = False  # the target counts in medians of the peer, not in units
    note: str = ""  # why a number is missing

    @property
    def ratio(self) -> float | None:
        """How many times our median the peer's is; None where either is missing or ours is 0."""
        ours = statistics.median(self.ours) if self.ours else 0.0
        return statistics.median(self.peer) / ours if self.peer and ours else None

    @property
    def met(self) -> bool | None:
        """Whether the target was met; None where there is none. What has no number did not meet it."""
        if self.target is None:
            return None
        if not self.ours or (self.relative and not self.peer):
            return False
        limit = self.target * (statistics.median(self.peer) if self.relative else 1)
        return statistics.median(self.ours) <= limit


def save(part: str, rows: Sequence[Row]) -> None:
    """Write every sample, with the machine and the date."""
    own = {"date": datetime.now(UTC).isoformat(timespec="seconds"), "machine": machine()}
    content = read() | {part: own | {"rows": [asdict(row) for row in rows]}}
    RESULTS.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def read() -> dict[str, Any]:
    """What was saved last of each part."""
    found: dict[str, Any] = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else {}
    return found


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


def write(parts: Sequence[str]) -> None:
    """Write the tables of README.md and docs/benchmarks.md from what is saved of these parts, and of the load."""
    text = [
        "# Benchmarks",
        "`make bench` measures the app and its peers side by side in one run, in about 20 minutes on two cores;\n"
        '`make bench ONLY="recording map_queries"` runs some of it, `make load` sends 100 visitors at once.\n'
        "Both write this page. Cells show the median, with the smallest and largest sample in brackets.\n"
        "Smaller is better.",
    ]
    rows: dict[tuple[str, str], Row] = {}
    results = read()
    for part in (*parts, "load"):
        saved = results.get(part)
        if saved is None:
            continue
        own = [Row(**row) for row in saved["rows"]]
        rows |= {(row.what, row.peer_name): row for row in own}
        place = saved["machine"]
        where = f"{place['processor']}, {place['cores']} cores, Python {place['python']}, {saved['date'][:10]}:"
        text += [f"## {part.replace('_', ' ').capitalize()}", where, table(own)]
    DOCUMENT.write_text("\n\n".join(text) + "\n", encoding="utf-8")
    before, rest = README.read_text(encoding="utf-8").split(BEGIN)
    shown = table([rows[name] for name in HIGHLIGHTS if name in rows])
    README.write_text(f"{before}{BEGIN}\n{shown}\n{END}{rest.split(END)[1]}", encoding="utf-8")


def table(rows: Sequence[Row]) -> str:
    """Return medians, spreads (smallest to largest), ratio, target and whether it was met, as a Markdown table."""
    head = ("what", "ours", "peer", "peer / ours", "target", "met")
    lines = [head, ("---", "---", "---", "--:", "---", "---"), *(_cells(row) for row in rows)]
    return "\n".join(f"| {' | '.join(cell.replace('|', '/') for cell in line)} |" for line in lines)


def _cells(row: Row) -> tuple[str, ...]:
    peer = _spread(row.peer, row.unit) or (row.note if row.ours else "")
    limit = "" if row.target is None else f"<= {row.target:g} {f'x {row.peer_name}' if row.relative else row.unit}"
    return (
        row.what,
        _spread(row.ours, row.unit) or row.note,
        f"{row.peer_name}: {peer}" if row.peer_name else peer,
        "" if row.ratio is None else _number(row.ratio),
        limit,
        {None: "", True: "yes", False: "NO"}[row.met],
    )


def _spread(samples: Sequence[float], unit: str) -> str:
    if not samples:
        return ""
    median = f"{_number(statistics.median(samples))} {unit}"
    low, high = _number(min(samples)), _number(max(samples))
    return median if low == high else f"{median} ({low} to {high})"


def _number(value: float) -> str:
    """Three digits that count, and no more than a reader needs: 1,234, 12.3, 1.23, 0.123."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if value else "0"
