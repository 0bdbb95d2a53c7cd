"""The C library is asked to keep freed memory, or to give it back, where it can be asked; nothing breaks elsewhere."""

from __future__ import annotations

import ctypes
import sys
from types import SimpleNamespace

import pytest

from viz_core.runtime.device import return_freed_memory, reuse_freed_memory


def test_linux_is_asked_to_keep_blocks_and_map_none(monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[int, int] = {}
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(mallopt=options.__setitem__))
    reuse_freed_memory()
    # M_MMAP_MAX, M_TRIM_THRESHOLD and M_TOP_PAD of malloc.h
    assert options == {-4: 0, -1: 2**31 - 1, -2: 256 * 2**20}


def test_linux_is_asked_to_map_large_blocks_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[int, int] = {}
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(mallopt=options.__setitem__))
    return_freed_memory()
    assert options == {-3: 2**20}  # M_MMAP_THRESHOLD


def test_elsewhere_nothing_is_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(ctypes, "CDLL", lambda _: pytest.fail("no library should be opened"))
    reuse_freed_memory()


def test_a_c_library_without_the_call_is_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace())
    reuse_freed_memory()

    def missing(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", missing)
    reuse_freed_memory()
