"""The loop behind a classifier and its pictures: resumed, ended early, averaged, held out, augmented."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from recipes import classification as loop
from recipes.classification import (
    ClassifierConfig,
    Views,
    accuracy,
    hold_out,
    predict,
    random_views,
    soft_targets,
    train_classifier,
)
from recipes.classifiers import measure, when_it_ended
from recipes.loop import RunOptions, TrainingState
from recipes.picture_sets import Pictures
from tests.recipes.bars import CONFIG, CPU, SMALL, bars
from viz_core.models import ViT
from viz_core.pretrained import build_classification_model


def train(
    out: Path, config: ClassifierConfig, resume: bool = False, minutes: float | None = None
) -> tuple[ViT, TrainingState]:
    pictures, run = bars(160, 2), RunOptions(out, CPU, minutes, resume)
    return train_classifier(
        lambda: build_classification_model(SMALL), pictures, measure(pictures, "garment"), config, run
    )


def test_a_resumed_run_ends_where_an_unbroken_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = replace(CONFIG, epochs=3, batch_size=25, save_minutes=0.0)
    whole, state = train(tmp_path / "whole", config)

    class KilledError(Exception):
        pass

    steps = iter(range(100))

    def killed(*arguments: object) -> torch.Tensor:
        if next(steps) == 5:  # within the second epoch of four batches
            raise KilledError
        return real(*arguments)  # type: ignore[arg-type]

    real = loop.logits
    monkeypatch.setattr(loop, "logits", killed)
    with pytest.raises(KilledError):
        train(tmp_path / "broken", config)
    monkeypatch.setattr(loop, "logits", real)
    again, resumed = train(tmp_path / "broken", config, resume=True)
    # The loss of the broken epoch is the mean of the batches that were left.
    names = ("epoch", "validation_loss", "validation_accuracy")
    assert [[p[k] for k in names] for p in resumed.curve] == [[p[k] for k in names] for p in state.curve]
    for name, parameter in whole.named_parameters():
        assert torch.equal(again.get_parameter(name), parameter), name
    assert resumed.lengths == state.lengths == [{"updates": 0, "epochs": 3, "minutes": None}]


def test_the_card_says_whether_the_length_was_fixed_beforehand() -> None:
    state, older = TrainingState(), TrainingState(updates=100)  # a run that began before lengths were kept
    for _ in range(2):  # begun, and resumed as it was
        state.set_length(40, None)
        state.updates += 100
        assert "no choice was made by them" in when_it_ended(state.lengths)
    state.set_length(60, 98.5)
    older.set_length(40, None)
    for run, lengths_text in ((state, "(to 40 epochs, then to 60 epochs or 98.5 minutes)"), (older, "(to 40 epochs)")):
        assert f"The length of the run was changed on its way {lengths_text}:\nthese" in when_it_ended(run.lengths)


def test_minutes_end_it_early_with_a_whole_curve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that a step moves on by a second: of 1,000 epochs of four steps, a tenth of a minute is six steps."""
    now = [0.0]
    monkeypatch.setattr("recipes.files.time.monotonic", lambda: now[0])

    def tick(*arguments: object) -> torch.Tensor:
        now[0] += 1
        return real(*arguments)  # type: ignore[arg-type]

    real = loop.logits
    monkeypatch.setattr(loop, "logits", tick)
    _, state = train(tmp_path, replace(CONFIG, epochs=1000, batch_size=25), minutes=0.1)
    assert [point["epoch"] for point in state.curve] == [1.0, 1.5]
    assert state.elapsed == 6
    assert json.loads(json.dumps(state.curve, allow_nan=False))


def test_the_weights_are_an_average_that_lags_behind(tmp_path: Path) -> None:
    model, _ = train(tmp_path, replace(CONFIG, epochs=1))
    last = torch.load(tmp_path / "last.pt", weights_only=True)["model"]
    assert any(not torch.equal(last[name], p) for name, p in model.named_parameters())
    assert not model.training


def test_what_is_held_out_is_not_trained_on() -> None:
    n = 100
    pictures = Pictures(torch.arange(n, dtype=torch.uint8).reshape(n, 1, 1, 1), torch.arange(n))
    train_part, held_out = hold_out(pictures, replace(CONFIG, held_out=30))
    assert len(held_out.labels) == 30
    assert sorted([*train_part.labels.tolist(), *held_out.labels.tolist()]) == list(range(n))
    assert torch.equal(train_part.pixels.flatten().long(), train_part.labels)
    again = hold_out(pictures, replace(CONFIG, held_out=30, epochs=99))[1]
    assert torch.equal(again.labels, held_out.labels)
    with pytest.raises(ValueError, match="expected more than 100 pictures to train on and to hold out, got 100"):
        hold_out(pictures, replace(CONFIG, held_out=100))


def test_by_hand() -> None:
    log_p = torch.tensor([[0.7, 0.3], [0.2, 0.8], [0.6, 0.4], [0.9, 0.1]]).log()
    assert accuracy(log_p, torch.tensor([0, 1, 1, 0])) == 75
    assert [CONFIG.side(p) for p in (0.0, 0.49, 0.5, 1.0)] == [6, 6, 8, 8]
    pixels = torch.tensor([0, 255, 255, 0], dtype=torch.uint8).reshape(1, 1, 2, 2)
    found = measure(Pictures(pixels, torch.tensor([0])), "garment")
    assert (found.mean, found.std, found.size) == ((0.5,), (0.5774,), (2, 2))
    smoothed = [[0.05, 0.85, 0.05, 0.05], [0.05, 0.05, 0.05, 0.85]]
    torch.testing.assert_close(soft_targets(torch.tensor([1, 3]), 4, 0.2), torch.tensor(smoothed))


def test_predictions_do_not_depend_on_the_batch() -> None:
    model, pictures = build_classification_model(SMALL), bars(7, 3)
    preparation = measure(pictures, "garment")
    torch.testing.assert_close(
        predict(model, pictures, preparation, rows=2), predict(model, pictures, preparation), atol=1e-5, rtol=0
    )


# Views

STILL = Views(shift=0, zoom=0, turn=0, mirror=False, brightness=0)


def seeded(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def view(X: torch.Tensor, side: int | None = None, **changes: float) -> torch.Tensor:
    views = Views(**{**STILL.__dict__, **changes})  # type: ignore[arg-type]
    return random_views(X, side or X.shape[-1], views, seeded())


def test_without_changes_a_view_is_the_picture_and_half_the_side_averages_four_pixels() -> None:
    X = torch.randn(3, 2, 8, 8)
    torch.testing.assert_close(view(X), X, atol=1e-5, rtol=0)
    torch.testing.assert_close(view(X, side=4), torch.nn.functional.avg_pool2d(X, 2), atol=1e-5, rtol=0)


def test_mirrored_or_not_and_both_happen() -> None:
    X = torch.randn(1, 1, 6, 6).expand(40, -1, -1, -1)
    found = view(X, mirror=True)
    flipped = [torch.allclose(f, X[0].flip(-1), atol=1e-5) for f in found]
    own_share = [torch.allclose(f, X[0], atol=1e-5) for f in found]
    assert all(a != b for a, b in zip(flipped, own_share, strict=True))
    assert 10 < sum(flipped) < 30


def test_a_shift_moves_by_no_more_than_its_limit() -> None:
    X = torch.zeros(50, 1, 20, 20)
    X[:, :, 10, 10] = 1.0
    found = view(X, shift=0.2)
    where = (found * torch.arange(20.0)).sum(dim=(1, 2, 3)) / found.sum(dim=(1, 2, 3))
    assert (where - 10).abs().max() <= 4.01  # 0.2 of 20 pixels
    assert (where - 10).abs().max() > 3
    assert where.min() < 8 < 12 < where.max()


def test_a_turn_keeps_the_middle_a_zoom_the_level_and_light_leaves_grey_grey() -> None:
    X = torch.rand(20, 1, 9, 9)
    torch.testing.assert_close(view(X, turn=90.0)[..., 4, 4], X[..., 4, 4], atol=1e-5, rtol=0)
    level = torch.full((5, 3, 8, 8), 0.7)
    torch.testing.assert_close(view(level, zoom=0.5, turn=45, shift=0.5), level)
    X = torch.randn(1, 1, 8, 8).expand(6, 3, -1, -1)
    found = view(X, brightness=0.3)
    torch.testing.assert_close(found[:, 0], found[:, 2], atol=1e-5, rtol=0)
    assert (found[0] - found[1]).abs().max() > 0.01


def test_a_view_is_the_same_for_a_seed() -> None:
    X, views = torch.randn(4, 3, 8, 8), Views(brightness=0.2)
    assert torch.equal(random_views(X, 8, views, seeded(3)), random_views(X, 8, views, seeded(3)))
    assert not torch.equal(random_views(X, 8, views, seeded(3)), random_views(X, 8, views, seeded(4)))
