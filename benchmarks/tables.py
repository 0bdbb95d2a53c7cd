"""Rows as a table: for the terminal, and in Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from benchmarks.report import Row

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
