"""A call in a process of its own: its answer, its failure, its end."""

from __future__ import annotations

import math
import multiprocessing
import os
import sys
import time
from functools import partial
from types import ModuleType
from typing import NoReturn

import pytest

from benchmarks import isolation
from benchmarks.isolation import in_own_process


@pytest.fixture(autouse=True)
def no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that another test has run here leaves itself behind as __main__, and a fresh process would run it."""
    monkeypatch.setitem(sys.modules, "__main__", ModuleType("__main__"))


def test_the_answer_comes_from_another_process() -> None:
    assert in_own_process(partial(math.sqrt, 4.0)) == 2.0
    assert in_own_process(os.getpid) != os.getpid()


def test_a_failure_says_how() -> None:
    with pytest.raises(RuntimeError, match="invalid literal for int"):
        in_own_process(partial(int, "x"))
    with pytest.raises(RuntimeError, match="ended without an answer"):
        in_own_process(partial(os._exit, 1))


def test_an_interrupted_call_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(_: object) -> NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(isolation, "_receive", interrupt)
    with pytest.raises(KeyboardInterrupt):
        in_own_process(partial(time.sleep, 3600))
    assert multiprocessing.active_children() == []
