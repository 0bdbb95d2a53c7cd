"""Who is timed when. The clocks here are not real ones."""

from __future__ import annotations

import pytest
import torch

from benchmarks.attention_view import Case, rows_of, sampled
from benchmarks.recording import bytes_held, eager_bytes
from benchmarks.sampling import in_turns, milliseconds
from benchmarks.starting import Start, start_rows
from viz_core.trace import attend, record


class Clock:
    """Every call takes the seconds it returns."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def watch(self, call: object) -> float:
        seconds = float(call())  # type: ignore[operator]
        self.now += seconds
        return seconds


def test_calls_take_turns_after_a_warm_up() -> None:
    clock, order = Clock(), []
    calls = {name: lambda name=name: order.append(name) or 1.0 for name in "ab"}
    assert in_turns(calls, clock.watch, samples=2, clock=clock) == {"a": (1.0, 1.0), "b": (1.0, 1.0)}
    assert "".join(order) == "ababab"


def test_a_slow_call_is_sampled_at_least_once_and_no_longer_than_allowed() -> None:
    clock = Clock()
    assert in_turns({"a": lambda: 40.0}, clock.watch, samples=9, most_seconds=30, clock=clock) == {"a": (40.0,)}
    clock = Clock()
    assert len(in_turns({"a": lambda: 10.0}, clock.watch, samples=9, most_seconds=30, clock=clock)["a"]) == 3
    clock = Clock()
    assert len(in_turns({"a": lambda: 40.0}, clock.watch, samples=9, fewest=3, most_seconds=30, clock=clock)["a"]) == 3
    assert len(in_turns({"a": lambda: 40.0}, Clock().watch, samples=1, fewest=3)["a"]) == 1


def test_no_samples_are_refused() -> None:
    with pytest.raises(ValueError, match="expected at least 1, got 0 and 1"):
        in_turns({}, Clock().watch, samples=0)


def test_milliseconds_are_thousandths() -> None:
    assert milliseconds({"a": (0.5, 2.0)}) == {"a": (500.0, 2000.0)}


def test_a_page_is_sampled_until_time_is_up_or_it_fails() -> None:
    clock = Clock()

    def take() -> Case:
        clock.now += 8
        return Case(open=(8.0,))

    assert sampled(take, 9, clock).open == (8.0, 8.0, 8.0)
    assert sampled(take, 2, clock).open == (8.0, 8.0)
    assert sampled(lambda: Case(note="failed"), 5, clock) == Case(note="failed")


def test_our_page_is_held_against_what_was_promised() -> None:
    ours = Case((0.4,), (2.1,), (0.8,), (1.0,), (900.0,), (0.05,))
    promised = [(row.what.split(": ")[1], row.met) for row in rows_of(128, ours, {}) if row.target is not None]
    assert promised == [("open", True), ("on the wire", False)]
    promised = [(row.what.split(": ")[1], row.met) for row in rows_of(4096, ours, {}) if row.target is not None]
    assert promised == [("on the wire", False), ("slowest layer", False)]
    assert {row.peer_name for row in rows_of(4096, ours, {})} == {""}


def test_a_peer_that_is_not_ready_is_said_so() -> None:
    ours, late = Case((0.4,), switch=(0.1,)), Case(note="not ready after 60 s")
    rows = rows_of(512, ours, {"BertViz model_view": late, "BertViz head_view": Case((9.0,), switch=(1.0,))})
    opened = [row for row in rows if row.what.endswith(": open")]
    assert [(row.peer_name, row.ours, row.peer, row.note) for row in opened] == [
        ("BertViz model_view", (0.4,), (), "not ready after 60 s"),
        ("BertViz head_view", (0.4,), (9.0,), ""),
    ]


def test_a_start_is_compared_with_the_empty_app_s() -> None:
    cold, first, following, memory = start_rows("home", [], [(Start(3.0, 1.0, 400.0), Start(2.0, 0.5, 100.0))] * 2)
    assert cold.note
    assert not cold.ours
    assert (first.met, first.ratio) == (True, pytest.approx(2 / 3))
    assert (following.ours, memory.peer) == ((1.0, 1.0), (100.0, 100.0))


def test_bytes_held_are_those_of_queries_and_keys_or_of_maps() -> None:
    q, k = torch.zeros(2, 1, 4, 10, 8)
    q, k = q.clone(), k.clone()
    with record() as trace:
        attend(q, k, k)
    assert bytes_held(trace) == 2 * 4 * 10 * 8 * 4
    assert bytes_held((torch.zeros(1, 4, 10, 10),) * 3) == 3 * 400 * 4
    assert bytes_held(q) == 0
    assert eager_bytes(2048) == pytest.approx(1.81e9, rel=0.01)  # 1,208 MB of maps and half as much again
