"""The benchmark tables of README.md and docs/benchmarks.md, from saved results: `python -m benchmarks.readme`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.parts import SAVED
from benchmarks.report import RESULTS, Result, Row, markdown_table, read
from benchmarks.serving import ROOT

BEGIN, END = "<!-- benchmarks: written by `python -m benchmarks.readme` -->", "<!-- end of benchmarks -->"
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


def results(order: Sequence[str], folder: Path = RESULTS) -> list[Result]:
    """Return the saved results of these parts in this order, each CPU result before its GPU result."""
    found = [path for part in order for path in (folder / f"{part}.json", folder / f"{part}-cuda.json")]
    return [read(path) for path in found if path.is_file()]


def highlights(found: Sequence[Result]) -> str:
    """Return the README's table: the rows in HIGHLIGHTS, measured on the CPU."""
    rows: dict[tuple[str, str], Row] = {}
    for result in found:
        if "gpu" not in result.machine:
            rows |= {(row.what, row.peer_name): row for row in result.rows}
    return markdown_table([rows[name] for name in HIGHLIGHTS if name in rows])


def everything(found: Sequence[Result]) -> str:
    """Return docs/benchmarks.md: the rows with a target or a headline by machine, then every row of every part."""
    parts = [
        "# Benchmarks",
        "`make bench` measures the app and its peers side by side in one run, in about 25 minutes on two cores;\n"
        '`make bench ONLY="recording map_queries"` runs some of it, `make load` sends 100 visitors at once.\n'
        "`python -m benchmarks.readme` writes this page. Cells show the median, with the smallest and largest sample\n"
        "in brackets. Smaller is better.",
        "## Targets and comparisons",
    ]
    for place, group in _by_machine(found).items():
        rows = [row for result in group for row in result.rows if row.target is not None or row.headline]
        if rows:
            parts += [_measured(place, group), markdown_table(rows)]
    for result in found:
        title = result.part.replace("_", " ").capitalize()
        device = f", {result.machine['gpu']}" if "gpu" in result.machine else ""
        parts += [f"## {title}{device}", _measured(_place(result), [result]), markdown_table(result.rows)]
    return "\n\n".join(parts) + "\n"


def between_markers(text: str, content: str) -> str:
    """Return the text with `content` between its markers.

    Raises:
        ValueError: if it does not have exactly one of each, in order.
    """
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        raise ValueError(f"expected {BEGIN} and then {END}, once each")
    before, rest = text.split(BEGIN)
    return f"{before}{BEGIN}\n{content}\n{END}{rest.split(END)[1]}"


def write() -> None:
    """Write both tables into their files."""
    found = results(SAVED)
    README.write_text(between_markers(README.read_text(encoding="utf-8"), highlights(found)), encoding="utf-8")
    DOCUMENT.write_text(everything(found), encoding="utf-8")


def _by_machine(found: Sequence[Result]) -> dict[str, list[Result]]:
    groups: dict[str, list[Result]] = {}
    for result in found:
        groups.setdefault(_place(result), []).append(result)
    return groups


def _place(result: Result) -> str:
    machine = result.machine
    return machine.get("gpu") or f"{machine['processor']}, {machine['cores']} cores"


def _measured(place: str, group: Sequence[Result]) -> str:
    dates = sorted({result.date[:10] for result in group})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    python = ", ".join(sorted({result.machine["python"] for result in group}))
    return f"{place}, Python {python}, {when}:"


if __name__ == "__main__":
    write()
