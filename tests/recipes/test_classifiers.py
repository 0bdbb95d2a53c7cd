"""A classifier from pictures to a checkpoint that loads, its training loop, its views, and its certainty."""

import json
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
from PIL import Image

from recipes import classification as loop
from recipes.__main__ import main
from recipes.classification import ClassifierConfig, Views, hold_out, most_on_one_key, train_classifier
from recipes.classifiers import CLASSIFIERS, continued, measure, when_it_ended
from recipes.loop import RunOptions, TrainingState
from recipes.picture_sets import FASHION_MNIST, Pictures, PictureSplit
from recipes.reliability import calibration_bins
from recipes.spread import key_penalty
from viz_core.maps.rollout import gradient_relevance
from viz_core.models import ViT
from viz_core.pretrained import (
    CheckpointError,
    ImageClassifier,
    build_classification_model,
    load,
    load_classifier,
    load_translator,
)
from viz_core.trace import record

CPU = torch.device("cpu")
NAME = "vit-fashion-mnist"
SMALL = {
    "architecture": "vit",
    "img_size": 8,
    "patch_size": 2,
    "num_hiddens": 24,
    "mlp_num_hiddens": 32,
    "num_heads": 2,
    "num_blks": 2,
    "emb_dropout": 0.0,
    "blk_dropout": 0.0,
    "num_classes": 10,
    "num_channels": 1,
}
CONFIG = ClassifierConfig(
    epochs=8,
    batch_size=40,
    sides=((0.0, 6), (0.5, 8)),
    views=Views(shift=0.05, zoom=0.05, turn=3, mirror=False),
    adam_lr=1e-2,
    label_smoothing=0.02,
    average=0.9,
    held_out=60,
)


def bars(count: int, seed: int) -> Pictures:
    """A bright bar on black: lying for labels 0 to 4, standing for 5 to 9, in one of five places."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(10, (count,), generator=generator)
    pixels = torch.randint(0, 40, (count, 1, 8, 8), generator=generator, dtype=torch.uint8)
    for i, label in enumerate(labels.tolist()):
        place = 1 + label % 5
        bar = (slice(place, place + 2), slice(0, 8))
        pixels[(i, 0, *(bar if label < 5 else bar[::-1]))] += 180
    return Pictures(pixels, labels)


class Shipped(NamedTuple):
    out: Path
    split: PictureSplit


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Shipped:
    """A checkpoint as the command writes it, of a small model that learned to tell bars apart."""
    out = tmp_path_factory.mktemp("checkpoints") / NAME
    split = PictureSplit(bars(860, 0), bars(200, 1))
    split.test.labels[:6] = (split.test.labels[:6] + 1) % 10  # it learns all: these are wrong, and in one direction
    data = replace(FASHION_MNIST, load=lambda _: split)
    with pytest.MonkeyPatch.context() as patch:
        spec = replace(CLASSIFIERS[NAME], data=data, architecture=SMALL, config=CONFIG)
        patch.setitem(CLASSIFIERS, NAME, spec)
        assert main([NAME, "--data", "unused", "--out", str(out)]) == 0
    return Shipped(out, split)


def read(shipped: Shipped, file: str) -> dict:
    return json.loads((shipped.out / file).read_text(encoding="utf-8"))


def classifier_of(shipped: Shipped) -> ImageClassifier:
    return load_classifier(NAME, device="cpu", folder=shipped.out.parent)


def test_it_learned_and_is_scored_as_a_visitor_asks(shipped: Shipped) -> None:
    """Test pictures as PIL pictures through `classify`: the same answers as the script's own evaluation."""
    training, scores = read(shipped, "training.json"), read(shipped, "config.json")["scores"]
    curve = training["curve"]
    assert [point["epoch"] for point in curve] == [float(i) for i in range(1, 9)]
    assert curve[-1]["train_loss"] < 0.6 * curve[0]["train_loss"]
    assert curve[-1]["validation_accuracy"] > 90
    assert scores["accuracy"] > 90

    classifier = classifier_of(shipped)
    found = [classifier.classify(Image.fromarray(pixels[0].numpy())) for pixels in shipped.split.test.pixels]
    counts = torch.zeros(10, 10, dtype=torch.long)
    for result, label in zip(found, shipped.split.test.labels, strict=True):
        counts[label, classifier.labels.index(result.label)] += 1
    assert classifier.card.scores == scores == {"accuracy": round(100 * int(counts.trace()) / 200, 2)}
    assert training["confusion"] == counts.tolist() != counts.T.tolist()

    confidence = torch.tensor([each.probabilities[each.label] for each in found])
    names = [classifier.labels[label] for label in shipped.split.test.labels]
    correct = torch.tensor([each.label == name for each, name in zip(found, names, strict=True)])
    bins = calibration_bins(confidence, correct)
    for recorded, expected in zip(training["calibration"]["bins"], bins, strict=True):
        assert recorded == pytest.approx(expected, abs=1e-4)
    assert training["calibration"]["pictures"] == 200
    distances = [each.distance for each in found if each.distance is not None]
    assert len(distances) == 200
    assert sum(not each.is_unfamiliar for each in distances) == 190  # 95%
    assert set(training["familiarity"]["strange"]) == {"noise", "one colour", "one red pixel"}


def test_a_classification_and_what_it_depends_on(shipped: Shipped, checkpoints: Path) -> None:
    classifier = classifier_of(shipped)
    result = classifier.classify(Image.effect_noise((90, 50), 80).convert("RGBA"))
    assert result.grid == (4, 4)
    assert result.trace.sites == ("encoder.0.self", "encoder.1.self")
    assert result.prepared.pixels.shape == (1, 1, 8, 8)
    chances = list(result.probabilities.values())
    assert result.label == next(iter(result.probabilities))
    assert chances == sorted(chances, reverse=True)
    assert sum(chances) == pytest.approx(1, abs=1e-5)
    assert set(result.probabilities) == set(classifier.labels) == set(FASHION_MNIST.labels)
    assert classifier.classify_prepared(result.prepared, positions=False).probabilities != result.probabilities
    assert classifier.classify_prepared(result.prepared).probabilities == result.probabilities

    found = classifier.relevance(result.prepared, "bag")
    with record(differentiable=True) as trace:
        logit = classifier.model(result.prepared.pixels)[0, classifier.labels.index("bag")]
    gradients = torch.autograd.grad(logit, [call.graph_weights for call in trace])
    expected = gradient_relevance([call.weights()[0] for call in result.trace], [g[0] for g in gradients])
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)
    with pytest.raises(ValueError, match="label: expected one of T-shirt/top"):
        classifier.relevance(result.prepared, "hat")
    with pytest.raises(CheckpointError, match="does not translate: its task is classification"):
        load_translator(NAME, device="cpu", folder=shipped.out.parent)
    with pytest.raises(CheckpointError, match="does not classify pictures: its task is translation"):
        load_classifier("tiny-en-fr", device="cpu", folder=checkpoints)


@pytest.mark.parametrize(
    ("change", "expected_text"),
    [
        ({"labels": ["a", "b"]}, "expected 10 different labels"),
        ({"labels": ["a"] * 10}, "expected 10 different labels"),
        ({"pixels": {}}, "does not say how pictures are prepared"),
        ({"pixels": {"form": "garment", "mean": [0.5] * 3, "std": [1] * 3}}, "expected 1 channels, got 3"),
        ({"model": {**SMALL, "architecture": "cnn"}}, "known architecture, got 'cnn'; those known: vit"),
        ({"model": {**SMALL, "patch_size": 3}}, "does not describe this architecture: expected a picture"),
        ({"model": {**SMALL, "num_hiddens": 26}}, "has the wrong shape"),
        ({"task": "singing"}, "names no known task: 'singing'"),
        ({"sha256": "0" * 64}, "its SHA-256 differs"),
    ],
)
def test_a_broken_checkpoint_says_so(shipped: Shipped, tmp_path: Path, change: dict, expected_text: str) -> None:
    (tmp_path / NAME).mkdir()
    for file in ("config.json", "model.safetensors"):
        (tmp_path / NAME / file).write_bytes((shipped.out / file).read_bytes())
    config = {**read(shipped, "config.json"), **change}
    (tmp_path / NAME / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(CheckpointError, match=expected_text):
        load(NAME, device="cpu", folder=tmp_path)


def train(
    out: Path, config: ClassifierConfig, resume: bool = False, minutes: float | None = None, start: ViT | None = None
) -> tuple[ViT, TrainingState]:
    pictures, run = bars(160, 2), RunOptions(out, CPU, minutes, resume)
    return train_classifier(
        lambda: build_classification_model(SMALL), pictures, measure(pictures, "garment"), config, run, start
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
    state = TrainingState()
    for _ in range(2):  # begun, and resumed as it was
        state.set_length(40, None)
        state.updates += 100
        assert "no choice was made by them" in when_it_ended(state.lengths)
    state.set_length(60, 98.5)
    assert "was changed on its way (to 40 epochs, then to 60 epochs or 98.5 minutes)" in when_it_ended(state.lengths)


def test_the_weights_are_an_average_that_lags_behind(tmp_path: Path) -> None:
    model, _ = train(tmp_path, replace(CONFIG, epochs=1))
    last = torch.load(tmp_path / "last.pt", weights_only=True)["model"]
    assert any(not torch.equal(last[name], p) for name, p in model.named_parameters())
    assert not model.training


def test_queries_on_one_key_cost_what_they_exceed_and_heads_are_measured_by_it() -> None:
    column = torch.zeros(1, 2, 4, 4)
    column[..., 1] = 1
    assert key_penalty(torch.full((1, 2, 4, 4), 0.25), free=0.25) == 0
    assert float(key_penalty(column, free=0.25)) == pytest.approx(0.75)
    half = torch.stack((column[:, 0], torch.full((1, 4, 4), 0.25)), dim=1)  # one head of two
    assert float(key_penalty(half, free=0.4)) == pytest.approx(0.3)
    model = build_classification_model(SMALL)
    for block in model.blocks:
        torch.nn.init.zeros_(block.attention.W_q.weight)  # then all scores are alike
    pictures = bars(5, 3)
    found = most_on_one_key(model, pictures, measure(pictures, "garment"))
    assert found == pytest.approx(np.full((2, 2), 1 / 17), abs=1e-6)  # 16 patches and the class token


def test_a_penalty_spreads_heads_of_a_model_that_learns_from_its_start(tmp_path: Path) -> None:
    start, _ = train(tmp_path / "start", replace(CONFIG, epochs=2))
    config = replace(CONFIG, epochs=1, muon_lr=None, teacher_share=0.5, free_on_key=0.06, key_penalty=0.0)
    pictures = bars(100, 4)
    most = {}
    for weight in (0.0, 5.0):
        model, _ = train(tmp_path / str(weight), replace(config, key_penalty=weight), start=start)
        most[weight] = most_on_one_key(model, pictures, measure(pictures, "garment"))
    even = 1 / 17  # 16 patches and the class token
    assert most[5.0].mean() - even < 0.6 * (most[0.0].mean() - even)
    with pytest.raises(ValueError, match="teacher_share: expected a model to start from"):
        train(tmp_path / "none", config)


def test_the_curve_of_a_second_training_goes_on_from_the_first() -> None:
    before = {"curve": [{"epoch": 1.0}, {"epoch": 2.0}], "updates": 20, "seconds": 60}
    both = continued(before, {"curve": [{"epoch": 0.5}], "updates": 5, "seconds": 9})
    assert both == {"curve": [{"epoch": 1.0}, {"epoch": 2.0}, {"epoch": 2.5}], "updates": 25, "seconds": 69}


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
