"""What imports leave behind is collected before it is frozen; what runs leave behind, now and then."""

from __future__ import annotations

import gc
from types import SimpleNamespace

import pytest
from streamlit import config

from serving.process import garbage_collection as garbage


def test_garbage_is_collected_before_it_would_be_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(garbage, "_num_modules", 0)
    monkeypatch.setattr(gc, "collect", lambda: done.append("collect"))
    monkeypatch.setattr(gc, "freeze", lambda: done.append("freeze"))
    garbage.freeze_imported_modules()
    garbage.freeze_imported_modules()
    assert done == ["collect", "freeze"]


def test_runs_are_collected_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[float] = []
    clock = [1000.0]
    monkeypatch.setattr(garbage, "_collected", 0.0)
    monkeypatch.setattr(gc, "collect", lambda: done.append(clock[0]))
    monkeypatch.setattr(garbage, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    for clock[0] in (1000.0, 1003.0, 1009.9, 1010.0, 1012.0, 1100.0):
        garbage.collect_periodically()
    assert done == [1000.0, 1010.0, 1100.0]


def test_streamlit_leaves_it_to_us() -> None:
    assert config.get_option("runner.postScriptGC") is False
