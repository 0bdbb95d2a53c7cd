"""Which parts run, and what is kept."""

from __future__ import annotations

import importlib
import inspect
from types import ModuleType

import pytest

from benchmarks import __main__ as command
from benchmarks import report
from benchmarks.report import Row


@pytest.mark.parametrize("name", command.PARTS)
def test_every_part_can_be_measured_and_tried_out(name: str) -> None:
    module = importlib.import_module(f"benchmarks.{name}")
    assert set(module.QUICK) <= set(inspect.signature(module.measure).parameters)


def fails() -> list[Row]:
    raise RuntimeError("this benchmark needs Chromium, and found none")


def interrupted() -> list[Row]:
    raise KeyboardInterrupt


def test_what_was_measured_is_kept_and_the_rest_is_told(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    measures = {
        "map_queries": lambda sizes=(7,): [Row(f"look {sizes[0]}", "s", (1.0,))],
        "visiting": interrupted,
        "circuits": fails,
    }
    real = importlib.import_module
    for name, measure in measures.items():
        module = ModuleType(name)
        module.measure, module.QUICK = measure, {"sizes": (1,)} if name == "map_queries" else {}  # type: ignore[attr-defined]
        measures[name] = module  # type: ignore[assignment]
    monkeypatch.setattr(importlib, "import_module", lambda n: measures.get(n.removeprefix("benchmarks.")) or real(n))
    saved: list[str] = []
    monkeypatch.setattr(report, "save", lambda part, _: saved.append(part))
    monkeypatch.setattr(report, "write", lambda _: saved.append("tables"))
    with pytest.raises(SystemExit, match="not measured: circuits"):
        command.main(["visiting", "circuits", "map_queries"])
    shown = capsys.readouterr().out
    assert saved == ["map_queries", "tables"]
    assert all(part in shown for part in ("look 7", "what was saved before stays", "found none"))
    command.main(["map_queries", "--quick"])
    assert saved == ["map_queries", "tables"]
    assert "look 1" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        command.main(["nothing"])
    assert "there is no benchmark nothing; there are recording" in capsys.readouterr().err


def test_a_target_counts_in_units_or_in_the_peers_and_what_has_no_number_missed_it() -> None:
    some, none = (2.0,), ()
    rows = {
        "| look | 2 s (1 to 4) |  |  |  |  |": Row("look", "s", (1.0, 2.0, 4.0)),
        "| look | 2 s |  |  | <= 1 s | NO |": Row("look", "s", (2.0,), target=1),
        "| look | 2 s | it: 1,234 s | 617 | <= 1.5 x it | yes |": Row("look", "s", some, "it", (1234.0,), 1.5, True),
        "| look | too long | it: 2 s |  | <= 1 x it | NO |": Row("look", "s", none, "it", some, 1, True, "too long"),
        "| look | 2 s | it: 16 GB |  | <= 1 x it | NO |": Row("look", "s", some, "it", none, 1, True, "16 GB"),
    }
    assert report.table(list(rows.values())).splitlines()[2:] == list(rows)
