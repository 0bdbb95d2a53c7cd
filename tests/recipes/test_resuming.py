"""A run that is killed ends where one does that is not, and one that is over can go on."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from recipes import translation as loop
from recipes.files import Clock, format_seconds
from recipes.loop import RunOptions
from recipes.sentence_pairs import Pair, Split
from recipes.translation import train_translation
from tests.recipes.small_translator import CONFIG, CPU, SHORT, Trained, build, memory_left_alone, train

__all__ = ["memory_left_alone"]


@pytest.fixture(scope="module")
def uninterrupted(pairs: list[Pair], tmp_path_factory: pytest.TempPathFactory, memory_left_alone: None) -> Trained:
    return train(pairs, tmp_path_factory.mktemp("uninterrupted"), SHORT)


class Killed(BaseException):
    """What no except clause of the loop catches."""


@pytest.mark.parametrize("after", [1, 3, 4, 6, 11])
def test_a_killed_run_ends_where_an_uninterrupted_one_does(
    after: int, uninterrupted: Trained, pairs: list[Pair], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Saved after each batch, killed in the middle or between epochs: bit for bit the same weights."""
    config = replace(SHORT, save_minutes=0.0)
    done, real = 0, loop.batch_loss

    def dying(*arguments: Any, **options: Any) -> tuple[Tensor, int]:
        nonlocal done
        if arguments[0].training:
            done += 1
            if done > after:
                raise Killed
        return real(*arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "batch_loss", dying)
        with pytest.raises(Killed):
            train(pairs, tmp_path, config)
    torch.manual_seed(99)  # another process has other random numbers
    resumed = train(pairs, tmp_path, config, resume=True)
    for name, tensor in uninterrupted.model.state_dict().items():
        assert torch.equal(resumed.model.state_dict()[name], tensor), name
    assert [point["validation_loss"] for point in resumed.state.curve] == [
        point["validation_loss"] for point in uninterrupted.state.curve
    ]
    assert resumed.state.epoch == uninterrupted.state.epoch == 3
    assert resumed.state.updates == uninterrupted.state.updates > 3


def test_the_same_seed_gives_the_same_weights_and_another_does_not(
    uninterrupted: Trained, pairs: list[Pair], tmp_path: Path
) -> None:
    torch.manual_seed(99)  # whatever was drawn before
    again = train(pairs, tmp_path / "again", SHORT)
    other = train(pairs, tmp_path / "other", replace(SHORT, seed=1))
    weights = [run.model.state_dict()["decoder.blks.block0.ffn.dense1.weight"] for run in (uninterrupted, again, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_each_epoch_is_mixed_anew(pairs: list[Pair], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[list[list[int]]] = []
    plan_batches = loop.plan_batches

    def watched(*arguments: Any, **options: Any) -> list[list[int]]:
        plans.append(plan_batches(*arguments, **options))
        return plans[-1]

    monkeypatch.setattr(loop, "plan_batches", watched)
    train(pairs, tmp_path, SHORT)
    assert len(plans) == 3
    assert plans[0] != plans[1] != plans[2] != plans[0]


def test_a_kill_while_saving_leaves_the_old_file_whole(
    pairs: list[Pair], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train(pairs, tmp_path, replace(CONFIG, epochs=1))
    before = (tmp_path / "last.pt").read_bytes()

    def half(content: object, path: Path) -> None:
        Path(path).write_bytes(b"half")
        if Path(path).name != "best.pt":
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(torch, "save", half)
        with pytest.raises(Killed):
            train(pairs, tmp_path, replace(CONFIG, epochs=2, save_minutes=0.0), resume=True)
    assert (tmp_path / "last.pt").read_bytes() == before


def test_a_finished_run_resumed_trains_no_more(uninterrupted: Trained, pairs: list[Pair]) -> None:
    again = train(pairs, uninterrupted.out, SHORT, resume=True)
    assert again.state.curve == uninterrupted.state.curve
    assert not again.model.training
    assert torch.equal(again.model.encoder.embedding.weight, uninterrupted.model.encoder.embedding.weight)


def test_a_resumed_run_may_go_further(pairs: list[Pair], tmp_path: Path) -> None:
    first = train(pairs, tmp_path, replace(CONFIG, epochs=1))
    further = train(pairs, tmp_path, replace(CONFIG, epochs=2), resume=True)
    assert [point["epoch"] for point in further.state.curve] == [1, 2]
    assert further.state.curve[0] == first.state.curve[0]
    assert further.state.elapsed > first.state.elapsed


def test_there_must_be_something_to_resume(pairs: list[Pair], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"nothing to resume from: .*last.pt does not exist"):
        train(pairs, tmp_path, SHORT, resume=True)


@pytest.mark.parametrize(("parts", "counts"), [(("", "v"), "0 and 2"), (("t", ""), "2 and 0")])
def test_there_must_be_pairs(parts: tuple[str, str], counts: str, tmp_path: Path) -> None:
    pairs = [Pair("Go.", "Va !"), Pair("Hi.", "Salut !")]
    split = Split(pairs if parts[0] else [], pairs if parts[1] else [], [])
    with pytest.raises(ValueError, match=f"expected sentence pairs to train on and to validate with, got {counts}"):
        train_translation(build, split, SHORT, RunOptions(tmp_path, CPU))
    assert list(tmp_path.iterdir()) == []


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
