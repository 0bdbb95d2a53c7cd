"""A classifier from pictures to a checkpoint that loads: it learns, can be killed and resumed, and says what it is."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
import torch
from PIL import Image
from safetensors.torch import load as load_tensors

from viz_core.maps.over_patches import token_attention
from viz_core.maps.relevance import gradient_relevance
from viz_core.maps.rollout import attention_rollout
from viz_core.models import ViT
from viz_core.pretrained import CheckpointError, build_classification_model, load, load_classifier, load_translator
from viz_core.pretrained.calibration import calibration_bins
from viz_core.trace import record
from viz_core.training import classification as loop
from viz_core.training.__main__ import main
from viz_core.training.augmentation import Views
from viz_core.training.classification import Recipe, accuracy, hold_out, predict, train_classifier
from viz_core.training.classifiers import DESIGNS, measure
from viz_core.training.loop import State
from viz_core.training.picture_sets import FASHION_MNIST, Pictures, PictureSplit

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
RECIPE = Recipe(
    epochs=8,
    batch_size=40,
    sides=((0.0, 6), (0.5, 8)),
    views=Views(shift=0.05, zoom=0.05, turn=3, mirror=False, cover=0.1),
    adam_lr=1e-2,
    label_smoothing=0.02,
    average=0.9,
    held_out=60,
    mixed=0.1,
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


@pytest.fixture(autouse=True)
def on_the_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATLAS_DEVICE", "cpu")
    monkeypatch.setattr(loop, "keep_freed_memory", lambda: None)


class Shipped(NamedTuple):
    out: Path
    split: PictureSplit


@pytest.fixture(scope="module")
def shipped(tmp_path_factory: pytest.TempPathFactory) -> Shipped:
    """A checkpoint as the command writes it, of a small model that learned to tell bars apart."""
    out = tmp_path_factory.mktemp("checkpoints") / NAME
    split = PictureSplit(bars(860, 0), bars(200, 1))
    data = replace(FASHION_MNIST, load=lambda _: split)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ATLAS_DEVICE", "cpu")
        patch.setattr(loop, "keep_freed_memory", lambda: None)
        design = replace(DESIGNS[NAME], data=data, architecture=SMALL, cpu_recipe=RECIPE)
        patch.setitem(DESIGNS, NAME, design)
        assert main([NAME, "--data", "unused", "--out", str(out)]) == 0
    return Shipped(out, split)


def read(shipped: Shipped, file: str) -> dict:
    return json.loads((shipped.out / file).read_text(encoding="utf-8"))


# From the command to the model


def test_it_learned(shipped: Shipped) -> None:
    curve = read(shipped, "training.json")["curve"]
    assert [point["epoch"] for point in curve] == [float(i) for i in range(1, 9)]
    assert curve[-1]["train_loss"] < 0.6 * curve[0]["train_loss"]
    assert curve[-1]["validation_accuracy"] > 90
    assert read(shipped, "config.json")["scores"]["accuracy"] > 90


def test_the_score_is_that_of_the_files_asked_as_a_visitor_asks(shipped: Shipped) -> None:
    """Test pictures as PIL pictures through `classify`: the same answers as the script's own evaluation."""
    classifier = load_classifier(NAME, device="cpu", folder=shipped.out.parent)
    right, counts = 0, torch.zeros(10, 10, dtype=torch.long)
    for pixels, label in zip(*shipped.split.test, strict=True):
        result = classifier.classify(Image.fromarray(pixels[0].numpy()))
        right += result.label == classifier.labels[label]
        counts[label, classifier.labels.index(result.label)] += 1
    assert classifier.card.scores == {"accuracy": round(100 * right / 200, 2)}
    assert read(shipped, "training.json")["confusion"] == counts.tolist()


def test_what_a_classification_says(shipped: Shipped) -> None:
    classifier = load_classifier(NAME, device="cpu", folder=shipped.out.parent)
    result = classifier.classify(Image.effect_noise((90, 50), 80).convert("RGBA"))
    assert result.grid == (4, 4)
    assert result.trace.sites == ("encoder.0.self", "encoder.1.self")
    assert result.prepared.pixels.shape == (1, 1, 8, 8)
    chances = list(result.probabilities.values())
    assert result.label == next(iter(result.probabilities))
    assert chances == sorted(chances, reverse=True)
    assert sum(chances) == pytest.approx(1, abs=1e-5)
    assert set(result.probabilities) == set(classifier.labels) == set(FASHION_MNIST.labels)
    assert token_attention(result.trace, 0, result.grid).shape == (2, 2, 4, 4)
    layers = [call.weights()[0] for call in result.trace]
    assert attention_rollout(layers).sum(dim=-1).tolist() == pytest.approx([1.0] * 17, abs=1e-5)


def test_relevance_of_a_label(shipped: Shipped) -> None:
    classifier = load_classifier(NAME, device="cpu", folder=shipped.out.parent)
    prepared = classifier.prepare(Image.fromarray(shipped.split.test.pixels[0, 0].numpy()))
    found = classifier.relevance(prepared, "bag")
    X = prepared.pixels
    weights = [call.weights()[0] for call in classifier.look(prepared).trace]
    with record(differentiable=True) as trace:
        logit = classifier.model(X)[0, classifier.labels.index("bag")]
    gradients = torch.autograd.grad(logit, [call.graph_weights for call in trace])
    torch.testing.assert_close(found, gradient_relevance(weights, [g[0] for g in gradients]), atol=1e-5, rtol=1e-4)
    with pytest.raises(ValueError, match="label: expected one of T-shirt/top"):
        classifier.relevance(prepared, "hat")


def test_without_positions_the_answer_differs_and_nothing_is_kept(shipped: Shipped) -> None:
    classifier = load_classifier(NAME, device="cpu", folder=shipped.out.parent)
    prepared = classifier.prepare(Image.fromarray(shipped.split.test.pixels[3, 0].numpy()))
    before = classifier.look(prepared).probabilities
    assert classifier.look(prepared, positions=False).probabilities != before
    assert classifier.look(prepared).probabilities == before


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
    for said in (
        f"{config['scores']['accuracy']:.2f}% of 200 test pictures",
        "MIT, Copyright (c) 2017 Zalando SE",
        "860 training pictures, 60 of them held out",
        "8.0 epochs in 0:00:",
        "| num_heads | 2 |",
        "| average | 0.9 |",
        "grey pictures of 8 x 8 pixels",
        "## Limits",
    ):
        assert said in card, said
    assert card.count("## Calibration\n") == 1


def test_how_sure_and_how_far_are_those_of_the_files_asked_as_a_visitor_asks(shipped: Shipped) -> None:
    training = read(shipped, "training.json")
    classifier = load_classifier(NAME, device="cpu", folder=shipped.out.parent)
    found = [classifier.classify(Image.fromarray(pixels[0].numpy())) for pixels in shipped.split.test.pixels]
    said = torch.tensor([each.probabilities[each.label] for each in found])
    names = [classifier.labels[label] for label in shipped.split.test.labels]
    right = torch.tensor([each.label == name for each, name in zip(found, names, strict=True)])
    for told, expected in zip(training["calibration"]["bins"], calibration_bins(said, right), strict=True):
        assert told == pytest.approx(expected, abs=1e-4)
    assert training["calibration"]["pictures"] == 200
    distances = [each.distance for each in found if each.distance is not None]
    assert len(distances) == 200
    assert sum(not each.strange for each in distances) == 190  # 95%
    assert set(training["familiarity"]["strange"]) == {"noise", "one colour", "one red pixel"}


def test_one_load_for_both_tasks_and_a_sentence_for_the_wrong_one(shipped: Shipped, checkpoints: Path) -> None:
    assert load(NAME, device="cpu", folder=shipped.out.parent).card.name == NAME
    with pytest.raises(CheckpointError, match="does not translate: its task is classification"):
        load_translator(NAME, device="cpu", folder=shipped.out.parent)
    with pytest.raises(CheckpointError, match="does not classify pictures: its task is translation"):
        load_classifier("tiny-en-fr", device="cpu", folder=checkpoints)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"labels": ["a", "b"]}, "expected 10 different labels"),
        ({"labels": ["a"] * 10}, "expected 10 different labels"),
        ({"pixels": {}}, "does not say how pictures are prepared"),
        ({"pixels": {"form": "garment", "mean": [0.5] * 3, "std": [1] * 3}}, "expected 1 channels, got 3"),
        ({"model": {**SMALL, "architecture": "cnn"}}, "known architecture, got 'cnn'; there is vit"),
        ({"model": {**SMALL, "patch_size": 3}}, "does not describe this architecture: expected a picture"),
        ({"model": {**SMALL, "num_hiddens": 26}}, "has the wrong shape"),
        ({"task": "singing"}, "names no known task: 'singing'"),
        ({"sha256": "0" * 64}, "its SHA-256 differs"),
    ],
)
def test_a_broken_checkpoint_says_so(shipped: Shipped, tmp_path: Path, change: dict, said: str) -> None:
    (tmp_path / NAME).mkdir()
    for file in ("config.json", "model.safetensors"):
        (tmp_path / NAME / file).write_bytes((shipped.out / file).read_bytes())
    config = {**read(shipped, "config.json"), **change}
    (tmp_path / NAME / "config.json").write_text(json.dumps(config), encoding="utf-8")
    with pytest.raises(CheckpointError, match=said):
        load(NAME, device="cpu", folder=tmp_path)


# The loop


def train(out: Path, recipe: Recipe, resume: bool = False) -> tuple[ViT, State]:
    pictures = bars(160, 2)
    preparation = measure(pictures, "garment")
    return train_classifier(
        lambda: build_classification_model(SMALL), pictures, preparation, out, recipe, CPU, resume=resume
    )


def test_a_resumed_run_ends_where_an_unbroken_one_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recipe = replace(RECIPE, epochs=3, batch_size=25, save_minutes=0.0)
    whole, state = train(tmp_path / "whole", recipe)

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
        train(tmp_path / "broken", recipe)
    monkeypatch.setattr(loop, "logits", real)
    again, resumed = train(tmp_path / "broken", recipe, resume=True)
    # The loss of the broken epoch is the mean of the batches that were left.
    kept = ("epoch", "validation_loss", "validation_accuracy")
    assert [[p[k] for k in kept] for p in resumed.curve] == [[p[k] for k in kept] for p in state.curve]
    for name, parameter in whole.named_parameters():
        assert torch.equal(again.get_parameter(name), parameter), name


def test_minutes_end_it_early_with_a_whole_curve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A clock that a step moves on by a second: of 1,000 epochs of four steps, a tenth of a minute is six steps."""
    now = [0.0]
    monkeypatch.setattr("viz_core.training.progress.time.monotonic", lambda: now[0])

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
        tmp_path,
        replace(RECIPE, epochs=1000, batch_size=25),
        CPU,
        minutes=0.1,
    )
    assert [point["epoch"] for point in state.curve] == [1.0, 1.5]
    assert state.elapsed == 6
    assert json.loads(json.dumps(state.curve, allow_nan=False))


def test_the_weights_are_an_average_that_lags_behind(tmp_path: Path) -> None:
    model, _ = train(tmp_path, replace(RECIPE, epochs=1))
    last = torch.load(tmp_path / "last.pt", weights_only=True)["model"]
    assert any(not torch.equal(last[name], p) for name, p in model.named_parameters())
    assert not model.training


def test_resolution_grows_with_progress() -> None:
    assert [RECIPE.side(p) for p in (0.0, 0.49, 0.5, 1.0)] == [6, 6, 8, 8]


def test_what_is_held_out_is_not_trained_on() -> None:
    n = 100
    pictures = Pictures(torch.arange(n, dtype=torch.uint8).reshape(n, 1, 1, 1), torch.arange(n))
    train_part, held_out = hold_out(pictures, replace(RECIPE, held_out=30))
    assert len(held_out.labels) == 30
    assert sorted([*train_part.labels.tolist(), *held_out.labels.tolist()]) == list(range(n))
    assert torch.equal(train_part.pixels.flatten().long(), train_part.labels)
    again = hold_out(pictures, replace(RECIPE, held_out=30, epochs=99))[1]
    assert torch.equal(again.labels, held_out.labels)
    with pytest.raises(ValueError, match="expected more than 100 pictures to train on and to hold out, got 100"):
        hold_out(pictures, replace(RECIPE, held_out=100))


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


@pytest.mark.parametrize("name", DESIGNS)
def test_each_design_is_small_and_worth_looking_at(name: str) -> None:
    design = DESIGNS[name]
    with torch.device("meta"):
        model = build_classification_model(design.architecture)
    count = sum(p.numel() for p in model.parameters())
    assert 1.2e6 < count < 2.7e6
    assert 2 * count < 8 * 2**20
    assert model.patch_embedding.num_patches >= 49
    assert len(model.blocks) == 6
    assert model.head[1].out_features == len(design.data.labels) == 10
    for recipe in (design.recipe, design.cpu_recipe):
        assert recipe.sides[0][0] == 0
        assert recipe.sides[-1][1] == design.architecture["img_size"]  # ends at the size it is tested at
        assert all(side % design.architecture["patch_size"] == 0 for _, side in recipe.sides)


@pytest.mark.parametrize("name", DESIGNS)
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
