"""Workers are counted by the cores and the memory that a container has, not by those of its machine."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from serving import settings
from serving.environment import usable_cores, usable_memory
from serving.settings import MAX_WORKERS, Settings, affordable_workers, hosted_settings

GB = 2**30
pytestmark = pytest.mark.attack("settings")


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _process: set(range(8)), raising=False)
    sizes = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": 64 * GB // 4096}
    monkeypatch.setattr(os, "sysconf", lambda name: sizes[name])


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


@pytest.mark.parametrize(
    ("limit", "memory"), [("max", 64 * GB), (str(4 * GB), 4 * GB), (str(2**50), 64 * GB), ("?", 64 * GB)]
)
@pytest.mark.parametrize("name", ["memory.max", "memory/memory.limit_in_bytes"])
def test_a_limit_of_memory_counts(tmp_path: Path, name: str, limit: str, memory: int) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(limit + "\n")
    assert usable_memory(tmp_path) == memory


def test_no_limit_of_version_1_is_a_large_number(tmp_path: Path) -> None:
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "memory.limit_in_bytes").write_text(str(2**63 - 4096))
    assert usable_memory(tmp_path) == 64 * GB


@pytest.mark.parametrize(("memory", "workers"), [(GB // 2, 1), (2 * GB, 1), (4 * GB, 4), (64 * GB, MAX_WORKERS)])
def test_workers_fit_into_the_memory(monkeypatch: pytest.MonkeyPatch, memory: int, workers: int) -> None:
    monkeypatch.setattr(settings, "usable_memory", lambda: memory)
    monkeypatch.setattr(settings, "usable_cores", lambda: 8)
    assert affordable_workers() == workers
    assert Settings(hosted=True).workers == workers
    assert Settings().workers == 0


def test_workers_that_cannot_fit_do_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "usable_memory", lambda: 4 * GB)
    monkeypatch.setenv("ATLAS_HOSTED", "1")
    monkeypatch.setenv("ATLAS_WORKERS", "200")
    with pytest.raises(SystemExit, match="200 workers need about 141,024 MB"):
        hosted_settings()
    monkeypatch.setenv("ATLAS_WORKERS", "2")
    assert hosted_settings().workers == 2
