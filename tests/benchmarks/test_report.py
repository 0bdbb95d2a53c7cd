"""What a benchmark reports, and how it is kept. Nothing here depends on a clock."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import report
from benchmarks.report import Row


def test_a_row_compares_medians_with_the_target() -> None:
    row = Row("paint", "s", (0.1, 0.9, 0.2), "plotly", (1.0, 1.0, 4.0), 0.25)
    assert (row.median, row.peer_median, row.ratio, row.met) == (0.2, 1.0, 5.0, True)
    assert not Row("paint", "s", (0.3,), "plotly", (0.1,), 0.25).met


def test_a_relative_target_counts_in_medians_of_the_peer() -> None:
    assert Row("forward", "s", (1.04, 1.04, 9.0), "fused", (1.0, 1.0, 0.1), 1.05, relative=True).met
    assert Row("forward", "s", (1.06,), "fused", (1.0,), 1.05, relative=True).met is False
    with pytest.raises(ValueError, match="a relative target needs a target and a peer"):
        Row("forward", "s", (1.0,), target=1.05, relative=True)


@pytest.mark.parametrize(
    ("row", "ratio", "met"),
    [
        (Row("open", "s", (0.2,), "BertViz", (), 0.5, note="not ready after 60 s"), None, True),
        (Row("open", "s", (), "BertViz", (9.0,), 0.5, note="failed"), None, False),
        (Row("forward", "s", (1.0,), "fused", (), 1.05, relative=True), None, False),
        (Row("open", "s", (0.2,), "BertViz", (9.0,)), 45.0, None),
        (Row("held", "MB", (0.0,), "eager", (9.0,)), None, None),
    ],
)
def test_a_missing_number_is_no_ratio_and_meets_no_target(row: Row, ratio: float | None, met: bool | None) -> None:
    assert (row.ratio and round(row.ratio, 9), row.met) == (ratio, met)


def test_results_keep_every_sample_with_machine_and_date(tmp_path: Path) -> None:
    row = Row("paint", "s", (0.1, 0.3), "plotly", (1.0,), 0.25, headline=True, note="n")
    path = report.save("x", [row], folder=tmp_path / "results")
    content = json.loads(path.read_text())
    assert path.name == "x.json"
    assert content["rows"][0]["ours"] == [0.1, 0.3]
    assert content["rows"][0]["met"] is True
    assert content["machine"]["cores"] >= 1
    assert content["date"].startswith("20")
    assert report.read(path).rows == (row,)
    assert report.read(path).part == "x"


def test_what_was_saved_by_an_older_version_is_still_read(tmp_path: Path) -> None:
    path = tmp_path / "old.json"
    stored = {"what": "w", "unit": "s", "ours": [1.0], "peer_name": "p", "peer": [2.0], "target": 1.5, "median": 1.0}
    path.write_text(json.dumps({"date": "2026-01-02T03:04:05", "machine": {"cores": 2}, "rows": [stored]}))
    result = report.read(path)
    assert (result.part, result.rows) == ("old", (Row("w", "s", (1.0,), "p", (2.0,), 1.5),))
