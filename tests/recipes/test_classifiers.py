"""A classifier from pictures to a checkpoint that loads, its training loop, its views, and its certainty."""

import json
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
from PIL import Image

from pages.vision_transformer.prediction import bin_of
from recipes.__main__ import main
from recipes.classification import ClassifierConfig, Views, accuracy, hold_out, soft_targets, train_classifier
from recipes.classifiers import CLASSIFIERS, measure
from recipes.loop import RunOptions, TrainingState
from recipes.picture_sets import FASHION_MNIST, Pictures, PictureSplit
from recipes.reliability import calibration_bins, expected_calibration_error, fit_familiarity
from viz_core.models import ViT
from viz_core.pretrained import CheckpointError, ImageClassifier, build_classification_model, load, load_classifier

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
    assert training["curve"][-1]["validation_accuracy"] > 90

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


@pytest.mark.parametrize(
    ("change", "expected_text"),
    [
        ({"labels": ["a"] * 10}, "expected 10 different labels"),
        ({"pixels": {"form": "garment", "mean": [0.5] * 3, "std": [1] * 3}}, "expected 1 channels, got 3"),
        ({"model": {**SMALL, "architecture": "cnn"}}, "known architecture, got 'cnn'; those known: vit"),
        ({"model": {**SMALL, "num_hiddens": 26}}, "has the wrong shape"),
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


def test_what_is_held_out_is_not_trained_on() -> None:
    n = 100
    pictures = Pictures(torch.arange(n, dtype=torch.uint8).reshape(n, 1, 1, 1), torch.arange(n))
    train_part, held_out = hold_out(pictures, replace(CONFIG, held_out=30))
    assert len(held_out.labels) == 30
    assert sorted([*train_part.labels.tolist(), *held_out.labels.tolist()]) == list(range(n))
    assert torch.equal(train_part.pixels.flatten().long(), train_part.labels)
    with pytest.raises(ValueError, match="expected more than 100 pictures to train on and to hold out, got 100"):
        hold_out(pictures, replace(CONFIG, held_out=100))


def test_bins_by_hand() -> None:
    confidence = torch.tensor([0.95, 0.91, 1.0, 0.55, 0.5])
    correct = torch.tensor([True, False, True, True, False])
    half, sure = calibration_bins(confidence, correct)
    assert (half["start"], half["stop"], half["pictures"]) == (0.5, 0.6, 2)
    assert half["confidence"] == pytest.approx(0.525)
    assert half["accuracy"] == 0.5
    assert (sure["start"], sure["stop"], sure["pictures"]) == (0.9, 1.0, 3)  # 1 is in the last bin, not past it
    assert (sure["confidence"], sure["accuracy"]) == pytest.approx((2.86 / 3, 2 / 3))
    # 2/5 * 0.025 + 3/5 * |2/3 - 2.86/3|
    assert expected_calibration_error([half, sure]) == pytest.approx(0.4 * 0.025 + 0.6 * 0.86 / 3)
    assert bin_of([half, sure], 0.5) == bin_of([half, sure], 0.59) == half
    assert bin_of([half, sure], 1.0) == bin_of([half, sure], 0.9) == sure
    assert bin_of([half, sure], 0.7) is None


def test_distances_are_mahalanobis() -> None:
    features = torch.randn(200, 5) @ torch.randn(5, 5) + 3
    x = features.double().numpy()
    away, inverse = x - x.mean(axis=0), np.linalg.inv(np.cov(x.T, bias=True))
    expected = np.sqrt(np.einsum("ni,ij,nj->n", away, inverse, away))
    np.testing.assert_allclose(fit_familiarity(features, ridge=0).distances(features), expected, rtol=1e-3)


def test_by_hand() -> None:
    log_p = torch.tensor([[0.7, 0.3], [0.2, 0.8], [0.6, 0.4], [0.9, 0.1]]).log()
    assert accuracy(log_p, torch.tensor([0, 1, 1, 0])) == 75
    assert [ClassifierConfig(sides=((0.0, 6), (0.5, 8))).side(p) for p in (0.0, 0.49, 0.5, 1.0)] == [6, 6, 8, 8]
    pixels = torch.tensor([0, 255, 255, 0], dtype=torch.uint8).reshape(1, 1, 2, 2)
    found = measure(Pictures(pixels, torch.tensor([0])), "garment")
    assert (found.mean, found.std, found.size) == ((0.5,), (0.5774,), (2, 2))
    smoothed = [[0.05, 0.85, 0.05, 0.05], [0.05, 0.05, 0.05, 0.85]]
    torch.testing.assert_close(soft_targets(torch.tensor([1, 3]), 4, 0.2), torch.tensor(smoothed))
