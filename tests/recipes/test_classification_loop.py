"""The loop behind a classifier: killed and resumed, ended early, averaged, held out, measured."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from recipes import classification as loop
from recipes.__main__ import main
from recipes.classification import ClassifierConfig, accuracy, hold_out, predict, train_classifier
from recipes.classifiers import CLASSIFIERS, measure, when_it_ended
from recipes.loop import RunOptions, TrainingState
from recipes.picture_sets import Pictures
from tests.recipes.bars import CONFIG, CPU, SMALL, bars
from viz_core.models import ViT
from viz_core.pretrained import build_classification_model

pytestmark = pytest.mark.usefixtures("on_the_cpu")


def train(out: Path, config: ClassifierConfig, resume: bool = False) -> tuple[ViT, TrainingState]:
    pictures = bars(160, 2)
    preparation = measure(pictures, "garment")
    return train_classifier(
        lambda: build_classification_model(SMALL), pictures, preparation, config, RunOptions(out, CPU, resume=resume)
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
    pictures = bars(160, 2)
    _, state = train_classifier(
        lambda: build_classification_model(SMALL),
        pictures,
        measure(pictures, "garment"),
        replace(CONFIG, epochs=1000, batch_size=25),
        RunOptions(tmp_path, CPU, minutes=0.1),
    )
    assert [point["epoch"] for point in state.curve] == [1.0, 1.5]
    assert state.elapsed == 6
    assert json.loads(json.dumps(state.curve, allow_nan=False))


def test_the_weights_are_an_average_that_lags_behind(tmp_path: Path) -> None:
    model, _ = train(tmp_path, replace(CONFIG, epochs=1))
    last = torch.load(tmp_path / "last.pt", weights_only=True)["model"]
    assert any(not torch.equal(last[name], p) for name, p in model.named_parameters())
    assert not model.training


def test_resolution_grows_with_progress() -> None:
    assert [CONFIG.side(p) for p in (0.0, 0.49, 0.5, 1.0)] == [6, 6, 8, 8]


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


def test_accuracy_by_hand() -> None:
    log_p = torch.tensor([[0.7, 0.3], [0.2, 0.8], [0.6, 0.4], [0.9, 0.1]]).log()
    assert accuracy(log_p, torch.tensor([0, 1, 1, 0])) == 75


def test_predictions_do_not_depend_on_the_batch() -> None:
    model, pictures = build_classification_model(SMALL), bars(7, 3)
    preparation = measure(pictures, "garment")
    torch.testing.assert_close(
        predict(model, pictures, preparation, rows=2), predict(model, pictures, preparation), atol=1e-5, rtol=0
    )


# The designs


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_each_design_is_small_and_worth_looking_at(name: str) -> None:
    spec = CLASSIFIERS[name]
    with torch.device("meta"):
        model = build_classification_model(spec.architecture)
    count = sum(p.numel() for p in model.parameters())
    assert 1.2e6 < count < 2.7e6
    assert 2 * count < 8 * 2**20
    assert model.patch_embedding.num_patches >= 49
    assert len(model.blocks) == 6
    assert model.head[1].out_features == len(spec.data.labels) == 10
    for config in (spec.config, spec.cpu_config):
        assert config.sides[0][0] == 0
        assert config.sides[-1][1] == spec.architecture["img_size"]  # ends at the size it is tested at
        assert all(side % spec.architecture["patch_size"] == 0 for _, side in config.sides)


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_no_data_and_no_network(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def no_network(*_: object, **__: object) -> None:
        raise OSError("no network here")

    monkeypatch.setattr("urllib.request.urlopen", no_network)
    assert main([name, "--data", str(tmp_path / "none"), "--out", str(tmp_path / "out")]) == 1
    assert capsys.readouterr().err == f"cannot train {name}: no network here\n"
    assert not (tmp_path / "out").exists()


def test_mean_and_deviation_are_of_the_training_pixels() -> None:
    pixels = torch.tensor([0, 255, 255, 0], dtype=torch.uint8).reshape(1, 1, 2, 2)
    found = measure(Pictures(pixels, torch.tensor([0])), "garment")
    assert (found.mean, found.std, found.size) == ((0.5,), (0.5774,), (2, 2))
