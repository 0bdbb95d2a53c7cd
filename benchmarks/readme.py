"""The tables of the README and of benchmarks/results, from what was saved: `python -m benchmarks.readme`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.parts import SAVED
from benchmarks.report import RESULTS, Result, read
from benchmarks.serving import ROOT
from benchmarks.tables import markdown_table

BEGIN, END = "<!-- benchmarks: written by `python -m benchmarks.readme` -->", "<!-- end of benchmarks -->"
README = ROOT / "README.md"


def results(order: Sequence[str], folder: Path = RESULTS) -> list[Result]:
    """What was saved, part by part, a GPU's after the CPU's."""
    found = [path for part in order for path in (folder / f"{part}.json", folder / f"{part}-cuda.json")]
    return [read(path) for path in found if path.is_file()]


def summary(found: Sequence[Result]) -> str:
    """What has a target or tells most, one table a machine, and where everything else stands."""
    parts = []
    for place, those in _by_machine(found).items():
        rows = [row for result in those for row in result.rows if row.target is not None or row.headline]
        if rows:
            parts += [_measured(place, those), markdown_table(rows)]
    parts.append(
        "Medians, smallest to largest in brackets; smaller is better. [Every row](benchmarks/results/README.md)."
    )
    return "\n\n".join(parts)


def everything(found: Sequence[Result]) -> str:
    """Every row of every part."""
    parts = ["# What `make bench`, `make load` and `python -m benchmarks.growth` measured"]
    for result in found:
        title = result.part.replace("_", " ").capitalize()
        device = f", {result.machine['gpu']}" if "gpu" in result.machine else ""
        parts += [f"## {title}{device}", _measured(_place(result), [result]), markdown_table(result.rows)]
    return "\n\n".join(parts) + "\n"


def between_markers(text: str, content: str) -> str:
    """The text with `content` between its markers.

    Raises:
        ValueError: if it has not one of each, in their order.
    """
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise ValueError(f"expected {BEGIN} and then {END}, once each")
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{content}\n{END}{rest.split(END)[1]}"


def write() -> None:
    """Both tables, into their files."""
    found = results(SAVED)
    README.write_text(between_markers(README.read_text(encoding="utf-8"), summary(found)), encoding="utf-8")
    (RESULTS / "README.md").write_text(everything(found), encoding="utf-8")


def _by_machine(found: Sequence[Result]) -> dict[str, list[Result]]:
    groups: dict[str, list[Result]] = {}
    for result in found:
        groups.setdefault(_place(result), []).append(result)
    return groups


def _place(result: Result) -> str:
    machine = result.machine
    return machine.get("gpu") or f"{machine['processor']}, {machine['cores']} cores"


def _measured(place: str, those: Sequence[Result]) -> str:
    dates = sorted({result.date[:10] for result in those})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    python = ", ".join(sorted({result.machine["python"] for result in those}))
    return f"{place}, Python {python}, {when}:"


if __name__ == "__main__":
    write()
