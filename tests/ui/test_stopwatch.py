"""Times of calls by their length, and the stopwatch of a page that shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch

from ui.blocks.stopwatch import StepwiseRun
from ui.compute.benchmark import Measurement, growth, measure, one_thread


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


def test_after_a_stop_nothing_is_measured() -> None:
    run = StepwiseRun(series(3), {}, 3)
    run.step()
    run.stop()
    run.step()
    assert (len(run.measurements), run.state) == (1, "stopped")


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


class Clock:
    """Time that passes only where a call says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def costing(clock: Clock, seconds: Callable[[str, int], float]) -> Callable[[str, int], Callable[[], object]]:
    def prepare(name: str, n: int) -> Callable[[], object]:
        def call() -> None:
            clock.now += seconds(name, n)

        return call

    return prepare


def test_short_lengths_first_and_every_name_at_each() -> None:
    clock = Clock()
    prepare = costing(clock, lambda name, n: n * (2 if name == "b" else 1) / 1000)
    found = list(measure(("a", "b"), (20, 10), prepare, clock=clock))
    assert [(m.name, m.n) for m in found] == [("a", 10), ("b", 10), ("a", 20), ("b", 20)]
    assert [m.seconds for m in found] == pytest.approx([0.01, 0.02, 0.02, 0.04])


def test_the_fastest_of_the_repeats_and_not_the_first_call() -> None:
    clock, costs = Clock(), iter([0.001, 0.02, 0.01, 0.015, 0.03, 0.002])
    prepare = costing(clock, lambda _name, _n: next(costs))
    (found,) = measure(("a",), (1,), prepare, clock=clock)
    # 0.001 warms up; with 0.03 the repeats have taken more than the 0.05 s they may
    assert found.seconds == pytest.approx(0.01)
    assert found.slowest == pytest.approx(0.03)


def test_what_would_take_too_long_is_left_out_and_the_rest_goes_on() -> None:
    clock = Clock()
    prepare = costing(clock, lambda name, n: (n / 100) ** 2 if name == "slow" else 0.001)
    found = list(measure(("slow", "quick"), (10, 100, 200, 400), prepare, clock=clock, max_seconds=3))
    slow = {m.n: m.seconds for m in found if m.name == "slow"}
    assert slow[10] == pytest.approx(0.01)
    assert slow[100] == pytest.approx(1.0)
    assert slow[200] is None  # 4 s foreseen
    assert slow[400] is None
    assert all(m.seconds is not None for m in found if m.name == "quick")


def test_it_ends_when_the_time_is_spent() -> None:
    clock = Clock()
    prepare = costing(clock, lambda _name, _n: 0.4)
    found = list(measure(("a",), range(1, 50), prepare, clock=clock, max_seconds=99, total_seconds=2.0))
    assert len(found) == 2  # each takes a warm-up and three repeats: 1.6 s


def test_one_thread_inside_and_as_before_outside() -> None:
    before = torch.get_num_threads()
    inside: list[int] = []
    series = measure(("a",), (1, 2), lambda _name, _n: lambda: inside.append(torch.get_num_threads()))
    next(series)
    assert set(inside) == {1}
    assert torch.get_num_threads() == before
    with pytest.raises(RuntimeError), one_thread():
        raise RuntimeError
    assert torch.get_num_threads() == before


def test_growth_is_per_doubling() -> None:
    assert growth(Measurement("a", 100, 1.0), Measurement("a", 200, 4.0)) == pytest.approx(4)
    assert growth(Measurement("a", 100, 1.0), Measurement("a", 800, 8.0)) == pytest.approx(2)
    with pytest.raises(ValueError, match="expected two measured lengths"):
        growth(Measurement("a", 100, 1.0), Measurement("a", 200, None))
    with pytest.raises(ValueError, match="expected two measured lengths"):
        growth(Measurement("a", 100, 1.0), Measurement("a", 100, 2.0))
