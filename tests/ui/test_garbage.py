"""What imports leave behind is collected before it is frozen; nothing happens where nothing was imported."""

from __future__ import annotations

import gc

import pytest

from ui import garbage


def test_garbage_is_collected_before_it_would_be_frozen(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []
    monkeypatch.setattr(garbage, "_seen", 0)
    monkeypatch.setattr(gc, "collect", lambda: done.append("collect"))
    monkeypatch.setattr(gc, "freeze", lambda: done.append("freeze"))
    garbage.spare_modules()
    garbage.spare_modules()
    assert done == ["collect", "freeze"]
