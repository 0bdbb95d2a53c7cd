"""Rows as tables, and the tables in their files."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import readme
from benchmarks.parts import SAVED
from benchmarks.readme import BEGIN, END
from benchmarks.report import Result, Row, save
from benchmarks.tables import markdown_table, number, text_table

MACHINE = {"processor": "a chip", "cores": 2, "python": "3.11.7"}


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0, "0"),
        (0.01234, "0.0123"),
        (0.2, "0.2"),
        (1.2345, "1.23"),
        (99.94, "99.9"),
        (123.4, "123"),
        (2.4e6, "2,400,000"),
    ],
)
def test_three_digits_are_enough(value: float, expected: str) -> None:
    assert number(value) == expected


def test_the_table_names_target_spread_and_verdict() -> None:
    rows = [
        Row("paint", "s", (0.1, 0.2, 0.9), "plotly", (1.0,), 0.25),
        Row("wire", "MB", (2.0,), "plotly", (7.0,), 1.2),
        Row("forward", "s", (2.0,), "fused", (2.0,), 1.05, relative=True),
    ]
    lines = text_table(rows).splitlines()
    assert "0.2 s (0.1 to 0.9)" in lines[2]
    assert "plotly: 1 s" in lines[2]
    assert lines[2].split()[-4:] == ["<=", "0.25", "s", "yes"]
    assert "3.5" in lines[3]
    assert lines[3].split()[-1] == "NO"
    assert "<= 1.05 x fused" in lines[4]


def test_a_missing_number_says_why_on_its_side() -> None:
    peer = text_table([Row("open", "s", (0.2,), "BertViz", (), note="not ready after 60 s")]).splitlines()[2]
    assert "0.2 s  BertViz: not ready after 60 s" in peer
    ours = text_table([Row("open", "s", (), "BertViz", (3.0,), 0.5, note="failed")]).splitlines()[2].split()
    assert ours == ["open", "failed", "BertViz:", "3", "s", "<=", "0.5", "s", "NO"]


def test_a_bar_in_a_cell_does_not_end_it() -> None:
    line = markdown_table([Row("a|b", "s", (1.0,))]).splitlines()[2]
    assert line.count("|") == 7
    assert line.startswith("| a/b | 1 s |")


def test_targets_and_headlines_of_each_machine_come_first() -> None:
    rows = (
        Row("with a target", "s", (1.0,), target=2.0),
        Row("a headline", "s", (1.0,), "p", (2.0,), headline=True),
        Row("detail", "s", (1.0,)),
    )
    found = [
        Result("one", "2026-01-02T00:00:00", MACHINE, rows),
        Result("two", "2026-01-04T00:00:00", MACHINE, rows[:1]),
        Result("one", "2026-01-03T00:00:00", MACHINE | {"gpu": "a large chip"}, rows[1:2]),
    ]
    first, *parts = readme.everything(found).split("## Targets and comparisons")[1].split("\n## ")
    assert first.count("| with a target |") == 2
    assert first.count("| a headline |") == 2
    assert "detail" not in first
    assert "a chip, 2 cores, Python 3.11.7, 2026-01-02 to 2026-01-04:" in first
    assert "a large chip, Python 3.11.7, 2026-01-03:" in first
    assert [part.split("\n")[0] for part in parts] == ["One", "Two", "One, a large chip"]
    assert "| detail |" in parts[0]


def test_the_readme_shows_chosen_rows_of_the_cpu() -> None:
    what, peer = readme.HIGHLIGHTS[0]
    found = [
        Result(
            "one", "2026-01-02T00:00:00", MACHINE, (Row(what, "s", (1.0,), peer, (3.0,)), Row("other", "s", (1.0,)))
        ),
        Result(
            "one", "2026-01-03T00:00:00", MACHINE | {"gpu": "a large chip"}, (Row(what, "s", (9.0,), peer, (9.0,)),)
        ),
    ]
    table = readme.highlights(found).splitlines()
    assert len(table) == 3
    assert table[2].startswith(f"| {what} | 1 s | {peer}: 3 s |")


def test_results_are_read_in_order_the_cpu_first(tmp_path: Path) -> None:
    save("b", [], folder=tmp_path)
    save("a", [], folder=tmp_path)
    (tmp_path / "b.json").rename(tmp_path / "b-cuda.json")
    save("b", [], folder=tmp_path)
    assert [result.part for result in readme.results(("b", "missing", "a"), tmp_path)] == ["b", "b", "a"]


def test_only_what_is_between_the_markers_changes() -> None:
    assert readme.between_markers(f"x\n{BEGIN}\nold\n{END}\ny", "new") == f"x\n{BEGIN}\nnew\n{END}\ny"
    for text in ("", BEGIN, f"{END} {BEGIN}", f"{BEGIN} {END} {END}"):
        with pytest.raises(ValueError, match="once each"):
            readme.between_markers(text, "new")


def test_the_tables_in_the_repository_are_those_of_its_results() -> None:
    """`python -m benchmarks.readme` writes both."""
    found = readme.results(SAVED)
    text = readme.README.read_text(encoding="utf-8")
    assert readme.between_markers(text, readme.highlights(found)) == text
    assert len(readme.highlights(found).splitlines()) == 2 + len(readme.HIGHLIGHTS)
    assert readme.DOCUMENT.read_text(encoding="utf-8") == readme.everything(found)
