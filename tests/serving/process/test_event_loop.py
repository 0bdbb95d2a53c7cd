"""How late the event loop is: seen while it is late, remembered for a minute."""

from __future__ import annotations

from serving.process.lifecycle import LoopMonitor


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def monitor() -> tuple[LoopMonitor, Clock]:
    clock = Clock()
    return LoopMonitor(clock), clock


def wait(made: LoopMonitor, clock: Clock, *lags: float) -> None:
    """Let the loop come round so many times, each time as late as this."""
    for lag in lags:
        clock.now += 0.1 + lag
        made.beat()


def test_a_loop_that_is_in_time_has_no_lag() -> None:
    made, clock = monitor()
    wait(made, clock, 0, 0, 0)
    assert made.longest_lag() < 1e-9


def test_a_delay_is_seen_while_it_lasts() -> None:
    made, clock = monitor()
    wait(made, clock, 0)
    clock.now += 5
    assert abs(made.busy_seconds() - 4.9) < 1e-9
    assert made.longest_lag() == made.busy_seconds()


def test_the_longest_of_a_minute_is_reported_and_then_the_next() -> None:
    made, clock = monitor()
    wait(made, clock, 3, 0, 1, 0)
    assert abs(made.longest_lag() - 3) < 1e-9
    wait(made, clock, *[0.0] * 590)
    assert abs(made.longest_lag() - 1) < 1e-9
    wait(made, clock, *[0.0] * 40)
    assert made.longest_lag() < 1e-9
