"""Pieces of work on several threads: in order, within the asker's context, and ended by what one raises."""

from __future__ import annotations

import threading

import pytest
import torch

from viz_core.runtime.device import parallel_map
from viz_core.runtime.hooks import interruptible, may_end


@pytest.fixture(params=[1, 4])
def cores(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("os.cpu_count", lambda: request.param * torch.get_num_threads())
    return int(request.param)


def test_results_come_in_the_order_of_the_items(cores: int) -> None:
    met = threading.Barrier(cores, timeout=60)  # nobody goes on until as many as there are cores have begun

    def work(item: int) -> tuple[int, str]:
        met.wait()
        return item * item, threading.current_thread().name

    results, names = zip(*parallel_map(work, range(4)), strict=True)
    assert results == (0, 1, 4, 9)
    assert len(set(names)) == cores


def test_what_one_raises_is_raised(cores: int) -> None:
    with pytest.raises(ZeroDivisionError):
        parallel_map(lambda item: 1 / item, [2, 1, 0])


def test_whoever_asked_may_end_it(cores: int) -> None:
    """The check of the asker's context runs in every thread."""

    class EndedError(Exception):
        pass

    def check() -> None:
        raise EndedError

    with interruptible(check), pytest.raises(EndedError):
        parallel_map(lambda _: may_end(), range(3))
    parallel_map(lambda _: may_end(), range(3))
