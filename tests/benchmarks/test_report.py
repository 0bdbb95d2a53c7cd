"""What a benchmark reports. Nothing here depends on a clock."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks import report
from benchmarks.__main__ import NAMES, main
from benchmarks.report import Row


def test_a_row_compares_medians_with_the_target() -> None:
    row = Row("paint", "s", (0.1, 0.9, 0.2), "plotly", (1.0, 1.0, 4.0), 0.25)
    assert (row.median, row.peer_median, row.ratio, row.met) == (0.2, 1.0, 5.0, True)
    assert not Row("paint", "s", (0.3,), "plotly", (0.1,), 0.25).met


def test_the_table_names_target_spread_and_verdict() -> None:
    lines = report.table(
        [
            Row("paint", "s", (0.1, 0.2, 0.9), "plotly", (1.0,), 0.25),
            Row("wire", "MB", (2.0,), "plotly", (7.0,), 1.2),
        ]
    ).splitlines()
    assert "0.200 s (0.100 to 0.900)" in lines[2]
    assert lines[2].split()[-4:] == ["<=", "0.25", "s", "yes"]
    assert "3.5" in lines[3]
    assert lines[3].split()[-1] == "NO"


def test_results_keep_every_sample_with_machine_and_date(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(report, "RESULTS", tmp_path / "results")
    content = json.loads(report.save("x", [Row("paint", "s", (0.1, 0.3), "plotly", (1.0,), 0.25)]).read_text())
    assert content["rows"][0]["ours"] == [0.1, 0.3]
    assert content["rows"][0]["met"] is True
    assert content["machine"]["cores"] >= 1
    assert content["date"].startswith("20")


def test_every_benchmark_is_found_and_a_wrong_name_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "sinusoid_heatmap" in NAMES
    monkeypatch.setattr("sys.argv", ["benchmarks", "nothing"])
    with pytest.raises(SystemExit):
        main()
    assert "there is no benchmark nothing; there are" in capsys.readouterr().err
