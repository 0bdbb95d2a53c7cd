"""Training in slices, the stopwatch of a page, and heads by their names, switched off."""

from collections.abc import Callable, Iterator
from itertools import count

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.view_bytes import decode_view
from tests.viz_core.view.attention_groups import make_group
from ui.blocks import heads_off
from ui.blocks.stopwatch import SLICE, StepwiseRun, Training
from ui.compute.benchmark import Measurement, growth, measure, one_thread
from ui.compute.heads import HeadImportance, HeadImportances, gradient_agreement
from ui.text import head_names
from ui.text.head_names import HeadNames, head_at, head_name, places_of
from viz_core.pretrained.bleu import Difference
from viz_core.runtime.hooks import interruptible
from viz_core.tasks import Plan, Shape, TaskRun
from viz_core.view.components import view_words
from viz_core.view.payload import View, encode_view
from viz_core.view.state import ViewState

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


def test_short_lengths_first_and_every_name_at_each() -> None:
    clock = Clock()
    prepare = clock.costing(lambda name, n: n * (2 if name == "b" else 1) / 1000)
    found = list(measure(("a", "b"), (20, 10), prepare, clock=clock))
    assert [(m.name, m.n) for m in found] == [("a", 10), ("b", 10), ("a", 20), ("b", 20)]
    assert [m.seconds for m in found] == pytest.approx([0.01, 0.02, 0.02, 0.04])


@pytest.mark.parametrize(
    ("costs", "fastest", "slowest"),
    [
        # 0.001 warms up; with 0.03 the repeats have taken more than the 0.05 s they may
        ([0.001, 0.02, 0.01, 0.015, 0.03, 0.002], 0.01, 0.03),
        ([9.0, 0.9, 0.8, 0.7, 0.1], 0.7, 0.9),  # three at least, however long they take
    ],
)
def test_the_fastest_of_the_repeats_and_not_the_first_call(costs: list[float], fastest: float, slowest: float) -> None:
    clock, left = Clock(), iter(costs)
    (found,) = measure(("a",), (1,), clock.costing(lambda _name, _n: next(left)), clock=clock)
    assert (found.seconds, found.slowest) == (pytest.approx(fastest), pytest.approx(slowest))


def test_what_would_take_too_long_is_left_out_and_the_rest_goes_on() -> None:
    clock = Clock()
    prepare = clock.costing(lambda name, n: (n / 100) ** 2 if name == "slow" else 0.001)
    found = list(measure(("slow", "quick"), (10, 100, 200, 400), prepare, clock=clock, max_seconds=3))
    slow = [m.seconds for m in found if m.name == "slow"]
    assert slow == [pytest.approx(0.01), pytest.approx(1.0), None, None]  # 4 s foreseen
    assert all(m.seconds is not None for m in found if m.name == "quick")


def test_it_ends_when_the_time_is_spent_and_nothing_runs_between_the_steps() -> None:
    clock, calls = Clock(), []
    prepare = clock.costing(lambda _name, n: calls.append(n) or 0.4)
    found = measure(("a",), range(1, 50), prepare, clock=clock, max_seconds=99, total_seconds=2.0)
    assert calls == []
    next(found)
    assert set(calls) == {1}
    assert len(list(found)) == 1  # each takes a warm-up and three repeats: 1.6 s
    assert set(calls) == {1, 2}


def test_one_thread_inside_and_as_before_outside() -> None:
    before, inside = torch.get_num_threads(), list[int]()
    next(measure(("a",), (1, 2), lambda _name, _n: lambda: inside.append(torch.get_num_threads())))
    assert (set(inside), torch.get_num_threads()) == ({1}, before)
    with pytest.raises(RuntimeError), one_thread():
        raise RuntimeError
    assert torch.get_num_threads() == before


def test_growth_is_per_doubling_and_what_cannot_be_measured_is_refused() -> None:
    first = Measurement("a", 100, 1.0)
    assert growth(first, Measurement("a", 200, 4.0)) == pytest.approx(4)
    assert growth(first, Measurement("a", 800, 8.0)) == pytest.approx(2)
    for other in (Measurement("a", 200, None), Measurement("a", 100, 2.0)):
        with pytest.raises(ValueError, match="expected two measured lengths"):
            growth(first, other)
    for lengths, limits, message in (
        ((1,), {"max_seconds": 0}, "expected limits above 0 seconds"),
        ((1,), {"total_seconds": -1}, "expected limits above 0 seconds"),
        ((0, 1), {}, "lengths: expected at least 1 each, got 0"),
    ):
        with pytest.raises(ValueError, match=message):
            next(measure(("a",), lengths, lambda _name, _n: lambda: None, **limits))


@pytest.mark.parametrize(
    ("language", "row"),
    [
        ("en", "head 3 of layer 2 (cross-attention), layer 1 (encoder)"),
        ("pt-BR", "cabeça 3 da camada 2 (atenção cruzada), camada 1 (codificador)"),
        ("zh-TW", "第 2 層第 3 頭（交叉注意力）、第 1 層（編碼器）"),
    ],
)
def test_heads_are_named_in_words_as_the_language_lists_them(
    monkeypatch: pytest.MonkeyPatch, language: str, row: str
) -> None:
    monkeypatch.setattr(heads_off, "current_language", lambda: language)
    monkeypatch.setattr(head_names, "current_language", lambda: language)
    assert heads_off.name_heads(("cross-2.3", "encoder-1")) == row
    many = [f"decoder-1.{head}" for head in range(1, 9)]
    assert heads_off.name_heads(many).endswith(" … (8)")
    assert head_names.head_title("decoder-1.7") not in heads_off.name_heads(many)


@pytest.mark.parametrize(("order", "expected"), [((1, 2, 3, 4), 1.0), ((4, 3, 2, 1), -1.0), ((2, 1, 4, 3), 0.6)])
def test_agreement_is_that_of_ranks(order: tuple[int, ...], expected: float) -> None:
    heads = [
        HeadImportance("encoder.0.self", i, Difference(-cost, -cost, -cost), None, float(np.exp(gradient)))
        for i, (cost, gradient) in enumerate(zip((1, 2, 3, 4), order, strict=True))
    ]
    assert gradient_agreement(HeadImportances("bleu", 1.0, 4, tuple(heads))) == pytest.approx(expected)


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


def test_the_view_names_a_head_by_its_place() -> None:
    groups = [make_group(3, 3, "self"), make_group(3, 4, "cross")]
    sites = [[call.site for call in group.calls] for group in groups]
    off = {(sites[0][1], 2), (sites[1][0], 0)}
    places = [f"{groups[0].id}.1.2", f"{groups[1].id}.0.0"]
    assert places_of(off, groups) == places
    assert head_at(places[0], groups) == (sites[0][1], 2)
    for nonsense in (None, 3, "", "self", "self.1.99", f"{groups[0].id}.01.2", {"a": 1}):
        assert head_at(nonsense, groups) is None
    state = ViewState(groups[0].id, 0, 0)
    view = View(groups, view_words())
    assert decode_view(encode_view(view, state, switches=places)).header["switches"] == places
    assert decode_view(encode_view(view, state)).header["switches"] is None


@given(st.sets(st.sampled_from(EVERY)))
def test_what_is_written_is_read(heads: set[tuple[str, int]]) -> None:
    names = NAMES.write(heads)
    assert NAMES.read(names) == tuple(head for head in EVERY if head in heads)
    assert len(names) <= len(heads)
    site, head = EVERY[-1]
    assert set(NAMES.read(NAMES.toggled(names, site, head))) == heads ^ {(site, head)}


@pytest.mark.parametrize(("site", "head"), EVERY)
def test_everything_but_one(site: str, head: int) -> None:
    for of_layer, others in ((False, EVERY), (True, [each for each in EVERY if each[0] == site])):
        assert set(NAMES.read(NAMES.but(site, head, of_layer=of_layer))) == set(others) - {(site, head)}
    assert head_name(site, head) in NAMES.every
