"""What is told to the person who waits, on a clock that tests move by hand."""

from __future__ import annotations

import time

import pytest

from recipes.progress import Clock, format_seconds


class Hand:
    """The hand of a clock."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def hand(monkeypatch: pytest.MonkeyPatch) -> Hand:
    hand = Hand()
    monkeypatch.setattr(time, "monotonic", hand)
    return hand


def test_elapsed_goes_on_from_an_earlier_run(hand: Hand) -> None:
    clock = Clock(epochs=10, minutes=None, elapsed=30.0)
    assert clock.elapsed == 30
    hand.now += 12.5
    assert clock.elapsed == 42.5


def test_progress_by_epochs(hand: Hand) -> None:
    clock = Clock(epochs=8, minutes=None)
    hand.now += 1e6
    assert [clock.progress(done) for done in (0, 2, 7.5, 8, 9)] == [0, 0.25, 0.9375, 1, 1]


def test_progress_by_minutes_where_they_run_out_first(hand: Hand) -> None:
    clock = Clock(epochs=8, minutes=2, elapsed=30)
    assert clock.progress(0) == 0.25
    assert clock.progress(4) == 0.5
    hand.now += 60
    assert clock.progress(4) == 0.75
    hand.now += 60
    assert clock.progress(0) == 1


def test_a_line_every_five_seconds(hand: Hand, capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock(epochs=4, minutes=None)
    for _ in range(12):
        hand.now += 1
        clock.line(1.0, loss=2.5, per_second=6543.2)
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "epoch   1.00   25.0%  loss 2.500  6,543 tokens/s  0:00:15 left",
        "epoch   1.00   25.0%  loss 2.500  6,543 tokens/s  0:00:30 left",
    ]


def test_before_any_progress_there_is_no_estimate(hand: Hand, capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock(epochs=4, minutes=None)
    hand.now += 6
    clock.line(0.0, loss=9.0, per_second=1.0)
    assert "0:00:00 left" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0:00:00"), (59.9, "0:00:59"), (61, "0:01:01"), (3723, "1:02:03"), (360000, "100:00:00")]
)
def test_seconds_for_people(seconds: float, text: str) -> None:
    assert format_seconds(seconds) == text
