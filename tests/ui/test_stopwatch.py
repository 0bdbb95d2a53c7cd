"""A run of the stopwatch in one reader's session: a step at a time, one rerun at a time, and an end."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ui.blocks.stopwatch import StepwiseRun
from ui.compute.benchmark import Measurement


def series(count: int) -> Iterator[Measurement]:
    for n in range(1, count + 1):
        yield Measurement("a", n, 0.1)


def test_a_step_is_one_measurement_and_the_last_ends_it() -> None:
    run = StepwiseRun(series(3), {}, 3)
    run.step()
    assert ([m.n for m in run.measurements], run.state) == ([1], "running")
    run.step()
    run.step()
    assert ([m.n for m in run.measurements], run.state) == ([1, 2, 3], "finished")
    run.step()
    assert len(run.measurements) == 3


def test_a_series_that_ends_early_is_finished_too() -> None:
    run = StepwiseRun(series(1), {}, 5)
    run.step()
    run.step()
    assert (len(run.measurements), run.state) == (1, "finished")


def test_after_a_stop_nothing_is_measured() -> None:
    run = StepwiseRun(series(3), {}, 3)
    run.step()
    run.stop()
    run.step()
    assert (len(run.measurements), run.state) == (1, "stopped")


def test_a_finished_run_stays_finished() -> None:
    run = StepwiseRun(series(1), {}, 1)
    run.step()
    run.stop()
    assert run.state == "finished"


def test_a_second_rerun_does_not_disturb_the_first() -> None:
    """Streamlit starts a new script thread while the old one is still measuring."""
    inner: list[int] = []

    def slow() -> Iterator[Measurement]:
        run.step()  # as another thread would, in the middle of a measurement
        inner.append(len(run.measurements))
        yield Measurement("a", 1, 0.1)

    run = StepwiseRun(slow(), {}, 5)
    run.step()
    assert inner == [0]
    assert len(run.measurements) == 1


def test_who_leaves_has_stopped_it(monkeypatch: pytest.MonkeyPatch) -> None:
    run = StepwiseRun(series(3), {}, 3)
    run.step()
    now = run.touched
    monkeypatch.setattr("ui.blocks.stopwatch.time.monotonic", lambda: now + 9)
    run.notice_absence()
    assert run.state == "running"
    monkeypatch.setattr("ui.blocks.stopwatch.time.monotonic", lambda: now + 11)
    run.notice_absence()
    assert run.state == "left"
    run.step()
    assert len(run.measurements) == 1


def test_what_was_stopped_can_be_taken_up_again_and_what_is_finished_cannot() -> None:
    run = StepwiseRun(series(3), {}, 3)
    run.step()
    run.stop()
    run.resume()
    run.step()
    run.step()
    assert ([m.n for m in run.measurements], run.state) == ([1, 2, 3], "finished")
    run.resume()
    assert run.state == "finished"
