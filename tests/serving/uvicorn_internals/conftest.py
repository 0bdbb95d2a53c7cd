"""Limits that a test need not wait for."""

from __future__ import annotations

from collections import Counter

import pytest

from serving.uvicorn_internals import limits as connections
from serving.uvicorn_internals.limits import Limits


@pytest.fixture(autouse=True)
def short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_INTERVAL", 0.05)
    monkeypatch.setattr(Limits, "head_seconds", 0.2)
    monkeypatch.setattr(Limits, "body_seconds", 0.3)
    monkeypatch.setattr(Limits, "slow_seconds", 0.2)
    monkeypatch.setattr(Limits, "message_bytes", 2**16)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    reasons: Counter[str] = Counter()
    monkeypatch.setattr(Limits, "count", lambda why: reasons.update([why]))
    return reasons
