"""Training in slices, the stopwatch of a page, and heads by their names, switched off."""

from collections.abc import Callable, Iterator
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ui.blocks import heads_off
from ui.blocks.stopwatch import SLICE, StepwiseRun, Training
from ui.compute.benchmark import Measurement, measure
from ui.text import head_names
from ui.text.head_names import HeadNames
from viz_core.runtime.hooks import interruptible
from viz_core.tasks import Plan, Shape, TaskRun

TINY = Shape(num_layers=1, num_heads=1, num_hiddens=32)


def tiny(steps: int, seed: int = 0) -> TaskRun:
    return TaskRun(Plan("copy", TINY, steps=steps, every=2, batch_size=2, longest=3, seed=seed))


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
    training, left = Training([run], clock=lambda: 0.0), iter([None, None])

    def check() -> None:
        if next(left, StopIteration) is StopIteration:
            raise TimeoutError

    with interruptible(check), pytest.raises(TimeoutError):
        next(training)
    assert run.step == 2
    for _ in training:
        pass
    assert run.curve == whole.curve


def series(count: int) -> Iterator[Measurement]:
    return iter([Measurement("a", n, 0.1) for n in range(1, count + 1)])


@pytest.mark.parametrize(
    ("count", "total", "actions", "measured", "state"),
    [
        (3, 3, "step", [1], "running"),
        (3, 3, "step step step step", [1, 2, 3], "finished"),
        (3, 3, "step stop step", [1], "stopped"),
        (3, 3, "step stop resume step step", [1, 2, 3], "finished"),
        (3, 3, "step step step resume", [1, 2, 3], "finished"),
        (1, 5, "step step", [1], "finished"),  # the series ends early
        (1, 1, "step stop", [1], "finished"),
    ],
)
def test_a_run_goes_on_step_by_step(count: int, total: int, actions: str, measured: list[int], state: str) -> None:
    run = StepwiseRun(series(count), {}, total)
    for action in actions.split():
        getattr(run, action)()
    assert ([m.n for m in run.measurements], run.state) == (measured, state)


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


class Clock:
    """Time that passes only where a call says so."""

    now = 0.0

    def __call__(self) -> float:
        return self.now

    def costing(self, seconds: Callable[[str, int], float]) -> Callable[[str, int], Callable[[], object]]:
        """Return what prepares calls that take so many seconds."""

        def pass_by(name: str, n: int) -> None:
            self.now += seconds(name, n)

        return lambda name, n: lambda: pass_by(name, n)


def test_what_would_take_too_long_is_left_out_and_the_rest_goes_on() -> None:
    clock = Clock()
    prepare = clock.costing(lambda name, n: (n / 100) ** 2 if name == "slow" else 0.001)
    found = list(measure(("slow", "quick"), (10, 100, 200, 400), prepare, clock=clock, max_seconds=3))
    slow = [m.seconds for m in found if m.name == "slow"]
    assert slow == [pytest.approx(0.01), pytest.approx(1.0), None, None]  # 4 s foreseen
    assert all(m.seconds is not None for m in found if m.name == "quick")


def test_heads_are_named_in_words_as_the_language_lists_them(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (heads_off, head_names):
        monkeypatch.setattr(module, "current_language", lambda: "zh-TW")
    assert heads_off.name_heads(("cross-2.3", "encoder-1")) == "第 2 層第 3 頭（交叉注意力）、第 1 層（編碼器）"
    many = [f"decoder-1.{head}" for head in range(1, 9)]
    assert heads_off.name_heads(many).endswith(" … (8)")
    assert head_names.head_title("decoder-1.7") not in heads_off.name_heads(many)


SITES = (("encoder.0.self", 2), ("encoder.1.self", 2), ("decoder.0.self", 1), ("decoder.0.cross", 3))
NAMES = HeadNames(SITES)
EVERY = [(site, head) for site, count in SITES for head in range(count)]


def test_names_are_those_of_an_address() -> None:
    assert NAMES.every == (
        *("encoder-1", "encoder-1.1", "encoder-1.2", "encoder-2", "encoder-2.1", "encoder-2.2"),
        *("decoder-1", "decoder-1.1", "cross-1", "cross-1.1", "cross-1.2", "cross-1.3"),
    )
    assert NAMES.read(["cross-1.3", "encoder-2", "encoder-2.1"]) == (
        ("encoder.1.self", 0),
        ("encoder.1.self", 1),
        ("decoder.0.cross", 2),
    )
    with pytest.raises(KeyError, match="cross-2"):
        NAMES.read(["cross-2"])


@given(st.sets(st.sampled_from(EVERY)))
def test_what_is_written_is_read(heads: set[tuple[str, int]]) -> None:
    names = NAMES.write(heads)
    assert NAMES.read(names) == tuple(head for head in EVERY if head in heads)
    assert len(names) <= len(heads)
    site, head = EVERY[-1]
    assert set(NAMES.read(NAMES.toggled(names, site, head))) == heads ^ {(site, head)}
