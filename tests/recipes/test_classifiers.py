"""A classifier from pictures to a checkpoint that loads, and how its certainty is measured."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from safetensors.torch import load as load_tensors

from pages.vision_transformer.prediction import bin_of
from recipes.__main__ import main
from recipes.classifiers import CLASSIFIERS
from recipes.picture_sets import FASHION_MNIST, PictureSplit
from recipes.reliability import calibration_bins, expected_calibration_error, fit_familiarity
from tests.recipes.bars import CONFIG, NAME, SMALL, bars
from viz_core.maps.rollout import gradient_relevance
from viz_core.pretrained import (
    CheckpointError,
    ImageClassifier,
    build_classification_model,
    load,
    load_classifier,
    load_translator,
)
from viz_core.trace import record


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


def test_a_classification_and_what_it_depends_on(shipped: Shipped) -> None:
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


def test_files_and_card(shipped: Shipped) -> None:
    files = sorted(path.name for path in shipped.out.iterdir())
    names = ["card.md", "config.json", "familiarity.safetensors", "last.pt", "model.safetensors", "training.json"]
    assert files == names
    stored = load_tensors((shipped.out / "model.safetensors").read_bytes())
    assert all(tensor.dtype == torch.float16 for tensor in stored.values())
    config = read(shipped, "config.json")
    assert config["task"] == "classification"
    assert config["parameters"] == sum(tensor.numel() for tensor in stored.values())
    card = (shipped.out / "card.md").read_text(encoding="utf-8")
    for expected_text in (
        f"{config['scores']['accuracy']:.2f}% of 200 test pictures",
        "MIT, Copyright (c) 2017 Zalando SE",
        "860 training pictures, 60 of them held out",
        "8.0 epochs in 0:00:",
        "no choice was made",
        "| average | 0.9 |",
    ):
        assert expected_text in card, expected_text
    assert card.count("## Calibration\n") == 1


def test_one_load_for_both_tasks_and_a_sentence_for_the_wrong_one(shipped: Shipped, checkpoints: Path) -> None:
    assert load(NAME, device="cpu", folder=shipped.out.parent).card.name == NAME
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


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_each_architecture_is_small_and_fits_its_data(name: str) -> None:
    spec = CLASSIFIERS[name]
    with torch.device("meta"):
        model = build_classification_model(spec.architecture)
    count = sum(p.numel() for p in model.parameters())
    assert 1.2e6 < count < 2.7e6
    assert 2 * count < 8 * 2**20
    assert model.patch_embedding.num_patches >= 49
    assert len(model.blocks) == 6
    assert model.head[1].out_features == len(spec.data.labels) == 10
    sides = spec.config.sides
    assert sides[0][0] == 0
    assert sides[-1][1] == spec.architecture["img_size"]  # ends at the size it is tested at
    assert all(side % spec.architecture["patch_size"] == 0 for _, side in sides)


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


@given(st.lists(st.tuples(st.floats(0, 1, width=32), st.booleans()), min_size=1, max_size=30))
def test_every_picture_is_in_one_bin_that_it_fits(pictures: list[tuple[float, bool]]) -> None:
    confidence, correct = torch.tensor([p for p, _ in pictures]), torch.tensor([r for _, r in pictures])
    bins = calibration_bins(confidence, correct)
    assert sum(each["pictures"] for each in bins) == len(pictures)
    assert all(each["start"] - 1e-6 <= each["confidence"] <= each["stop"] + 1e-6 for each in bins)
    assert sum(each["pictures"] * each["accuracy"] for each in bins) == pytest.approx(int(correct.sum()))
    assert 0 <= expected_calibration_error(bins) <= 1


def test_distances_are_mahalanobis_and_do_not_depend_on_the_axes() -> None:
    features = torch.randn(200, 5) @ torch.randn(5, 5) + 3
    known = fit_familiarity(features, ridge=0)
    x = features.double().numpy()
    inverse = np.linalg.inv(np.cov(x.T, bias=True))
    away = x - x.mean(axis=0)
    expected = np.sqrt(np.einsum("ni,ij,nj->n", away, inverse, away))
    np.testing.assert_allclose(known.distances(features), expected, rtol=1e-3)
    turned = torch.randn(5, 5) + 2 * torch.eye(5)
    again = fit_familiarity(features @ turned, ridge=0).distances(features @ turned)
    torch.testing.assert_close(again, known.distances(features), rtol=1e-2, atol=1e-2)


def test_pictures_all_alike() -> None:
    same = fit_familiarity(torch.ones(4, 3))
    assert same.distances(torch.ones(1, 3)).item() == 0
    assert same.distances(torch.zeros(1, 3)).item() > 1e6  # nothing else was ever seen
