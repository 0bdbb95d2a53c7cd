"""Which parts run where, and what is kept."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from types import ModuleType

import pytest
import torch

from benchmarks import __main__ as command
from benchmarks.report import Row


@pytest.fixture
def saved(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What would be written, and where."""
    names: list[str] = []
    monkeypatch.setattr(command, "save", lambda part, _rows, device: names.append(f"{part} {device}"))
    monkeypatch.setattr(command.readme, "write", lambda: names.append("tables"))
    monkeypatch.setattr(command, "in_own_process", lambda call: call())  # what is patched here is not patched there
    return names


def part(monkeypatch: pytest.MonkeyPatch, name: str, measure: object) -> None:
    module = ModuleType(name)
    module.measure = measure  # type: ignore[attr-defined]
    module.QUICK = {"sizes": (1,)}  # type: ignore[attr-defined]
    real = importlib.import_module
    monkeypatch.setattr(importlib, "import_module", lambda n: module if n == f"benchmarks.{name}" else real(n))


@pytest.mark.parametrize("name", command.PARTS)
def test_every_part_can_be_measured_and_tried_out(name: str) -> None:
    module = importlib.import_module(f"benchmarks.{name}")
    assert set(module.QUICK) <= set(inspect.signature(module.measure).parameters)
    assert (Path(command.__file__).parent / f"{name}.py").is_file()


def test_a_wrong_name_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        command.main(["nothing"])
    assert "there is no benchmark nothing; there are recording" in capsys.readouterr().err


def test_a_gpu_is_used_by_the_parts_that_can(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert command.devices("recording") == ["cpu"]
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert command.devices("recording") == ["cpu", "cuda"]
    assert command.devices("recording", "cuda") == ["cuda"]
    assert command.devices("starting") == ["cpu"]
    assert command.devices("starting", "cuda") == []


def test_what_was_measured_is_kept_and_shown(
    monkeypatch: pytest.MonkeyPatch, saved: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    part(monkeypatch, "map_queries", lambda sizes=(7,): [Row(f"look {sizes[0]}", "s", (1.0,))])
    command.main(["map_queries"])
    assert saved == ["map_queries cpu", "tables"]
    assert "look 7" in capsys.readouterr().out


def test_a_try_out_keeps_nothing(
    monkeypatch: pytest.MonkeyPatch, saved: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    part(monkeypatch, "map_queries", lambda sizes=(7,): [Row(f"look {sizes[0]}", "s", (1.0,))])
    command.main(["map_queries", "--quick"])
    assert saved == []
    assert "look 1" in capsys.readouterr().out


def test_an_interrupted_part_leaves_what_was_saved_and_the_next_runs(
    monkeypatch: pytest.MonkeyPatch, saved: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted() -> list[Row]:
        raise KeyboardInterrupt

    part(monkeypatch, "starting", interrupted)
    part(monkeypatch, "map_queries", lambda: [Row("look", "s", (1.0,))])
    command.main(["starting", "map_queries"])
    assert saved == ["map_queries cpu", "tables"]
    assert "what was saved before stays" in capsys.readouterr().out


def test_a_part_that_fails_is_told_at_the_end(
    monkeypatch: pytest.MonkeyPatch, saved: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    def fails() -> list[Row]:
        raise RuntimeError("this benchmark needs Chromium, and found none")

    part(monkeypatch, "starting", fails)
    part(monkeypatch, "map_queries", lambda: [Row("look", "s", (1.0,))])
    with pytest.raises(SystemExit, match="not measured: starting"):
        command.main(["starting", "map_queries"])
    assert saved == ["map_queries cpu", "tables"]
    assert "needs Chromium, and found none" in capsys.readouterr().out
