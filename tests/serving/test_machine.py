"""Workers are counted by the cores that a container has, not by those of its machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from serving.cores import usable_cores

pytestmark = pytest.mark.attack("settings")


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: set(range(8)), raising=False)


@pytest.mark.parametrize(("quota", "cores"), [("max 100000", 8), ("250000 100000", 2), ("50000 100000", 1), ("?", 8)])
def test_a_quota_counts(tmp_path: Path, quota: str, cores: int) -> None:
    (tmp_path / "cpu.max").write_text(quota)
    assert usable_cores(tmp_path) == cores


@pytest.mark.parametrize(("quota", "cores"), [("-1", 8), ("300000", 3)])
def test_a_quota_of_version_1_counts(tmp_path: Path, quota: str, cores: int) -> None:
    (tmp_path / "cpu").mkdir()
    (tmp_path / "cpu" / "cpu.cfs_quota_us").write_text(quota + "\n")
    (tmp_path / "cpu" / "cpu.cfs_period_us").write_text("100000\n")
    assert usable_cores(tmp_path) == cores


def test_affinity_counts_where_nothing_is_limited(tmp_path: Path) -> None:
    assert usable_cores(tmp_path) == 8
