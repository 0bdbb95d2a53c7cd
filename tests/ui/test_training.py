"""Training in slices: side by side, cut short anywhere, within its time."""

from __future__ import annotations

from itertools import count

import pytest

from ui.blocks.training import SLICE, Training
from viz_core.runtime.hooks import interruptible
from viz_core.tasks import Plan, Shape, TaskRun

TINY = Shape(num_layers=1, num_heads=1, num_hiddens=32)


def tiny(steps: int, seed: int = 0) -> TaskRun:
    return TaskRun(Plan("copy", TINY, steps=steps, every=2, batch_size=2, longest=3, seed=seed))


def test_runs_go_side_by_side_until_the_last_is_done() -> None:
    runs = tiny(3), tiny(5, seed=1)
    seconds = count(step=SLICE)  # each look at the clock is a slice later
    training = Training(runs, clock=lambda: next(seconds))
    slices = [(next(training), runs[0].step, runs[1].step)]
    assert slices[0][1:] in ((0, 0), (1, 1))
    for _ in training:
        assert abs(runs[0].step - min(3, runs[1].step)) == 0
    assert [run.step for run in runs] == [3, 5]
    assert [point.step for point in runs[1].curve] == [1, 2, 3, 4, 5]


def test_when_the_seconds_are_spent_it_ends() -> None:
    run = tiny(100)
    ticks = count(step=0.3)
    training = Training([run], most=1.0, clock=lambda: next(ticks))
    spent = list(training)
    assert spent == sorted(spent)
    assert 1.0 <= spent[-1] < 1.0 + 2 * SLICE + 0.3
    assert not run.finished


def test_cut_short_it_goes_on_where_it_was_and_ends_as_if_never_stopped() -> None:
    run, whole = tiny(6), tiny(6)
    list(whole.advance())
    training, left = Training([run]), iter([None, None])

    def check() -> None:
        if next(left, StopIteration) is StopIteration:
            raise TimeoutError

    with interruptible(check), pytest.raises(TimeoutError):
        next(training)
    assert run.step == 2
    for _ in training:
        pass
    assert run.curve == whole.curve
