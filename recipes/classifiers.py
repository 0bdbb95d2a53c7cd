"""The classifiers that ship: small vision transformers, one loop, few passes, the first at low resolution."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from recipes.classification import ClassifierConfig, Views, accuracy, most_on_one_key, predict, train_classifier
from recipes.files import format_seconds, settings_table, ship_weights, write_checkpoint
from recipes.loop import RunOptions
from recipes.picture_sets import CIFAR10, FASHION_MNIST, Pictures, PictureSet, PictureSplit
from recipes.reliability import record_reliability
from viz_core.images.preprocessing import Preparation
from viz_core.models.vit import ViT
from viz_core.pretrained import load_classifier
from viz_core.pretrained.classifier import build_classification_model, read_classifier
from viz_core.pretrained.shipped import read_card


@dataclass(frozen=True)
class ClassifierSpec:
    """Architecture and training configuration of a classifier."""

    title: str
    description: str  # first words of its card
    data: PictureSet
    architecture: dict[str, Any]
    config: ClassifierConfig


_PICTURES_OF_HEADS = 500  # of the test set, that the weight of each head on one key is measured on
_MUCH = 0.35  # of a head's weight on one key

# Without dropout: augmentation and the average of weights do its work in models this small.
_VIT = {
    "architecture": "vit",
    "patch_size": 4,
    "num_blks": 6,
    "num_hiddens": 144,
    "mlp_num_hiddens": 432,
    "num_heads": 6,
    "num_classes": 10,
    "emb_dropout": 0.0,
    "blk_dropout": 0.0,
    "use_bias": True,
}

CLASSIFIERS = {
    "vit-fashion-mnist": ClassifierSpec(
        "Vision Transformer, Fashion-MNIST",
        "a small Vision Transformer after Dosovitskiy et al. (2021), pre-norm, 49 patches of 4 x 4 pixels",
        FASHION_MNIST,
        {**_VIT, "img_size": 28, "num_channels": 1},
        ClassifierConfig(
            epochs=2,
            muon_lr=None,
            adam_lr=5e-4,
            batch_size=96,
            views=Views(shift=0.06, zoom=0.08, turn=4.0),
            start="vit-fashion-mnist",
            teacher_share=0.5,
            key_penalty=1.0,
        ),
    ),
    "vit-cifar10": ClassifierSpec(
        "Vision Transformer, CIFAR-10",
        "a small Vision Transformer after Dosovitskiy et al. (2021), pre-norm, 64 patches of 4 x 4 pixels",
        CIFAR10,
        {**_VIT, "img_size": 32, "num_channels": 3},
        ClassifierConfig(
            sides=((0.0, 16), (0.45, 24), (0.75, 32)), views=Views(shift=0.1, zoom=0.12, turn=4.0, brightness=0.1)
        ),
    ),
}


def train(name: str, data: Path, run: RunOptions, epochs: int | None) -> None:
    """Train one of CLASSIFIERS, evaluate it on the test pictures and write the checkpoint with its card."""
    spec = CLASSIFIERS[name]
    config = spec.config if epochs is None else replace(spec.config, epochs=epochs)
    split = spec.data.load(data)
    preparation = measure(split.train, spec.data.form)
    build = partial(build_classification_model, spec.architecture)
    before = None if config.start is None else load_classifier(config.start, run.device)
    model, state = train_classifier(
        build, split.train, preparation, config, run, None if before is None else before.model
    )
    # What was to be its end is listed beside the rest: several if that changed on the way.
    training = state.record(config, run.device) | {"lengths": state.lengths}
    if before is not None:
        training |= continued(before.card.training, training)
        some = split.test.part(torch.arange(_PICTURES_OF_HEADS))
        heads = [most_on_one_key(each, some, preparation).round(3).tolist() for each in (before.model, model)]
        training["most_on_one_key"] = dict(zip(("before", "after"), heads, strict=True))
    export_classifier(name, spec, model, split, preparation, training, run)


def continued(before: Mapping[str, Any], training: Mapping[str, Any]) -> dict[str, Any]:
    """Curve, updates and seconds of both trainings together, the second's epochs counted on from the first's."""
    last = before["curve"][-1]["epoch"]
    added = [{**point, "epoch": last + point["epoch"]} for point in training["curve"]]
    sums = {name: before[name] + training[name] for name in ("updates", "seconds")}
    return {"curve": [*before["curve"], *added], **sums}


def measure(pictures: Pictures, form: str) -> Preparation:
    """Mean and deviation of each channel of the training pictures, and the form that visitors' pictures are given."""
    pixels = pictures.pixels.float() / 255
    mean, std = pixels.mean(dim=(0, 2, 3)), pixels.std(dim=(0, 2, 3))
    height, width = pixels.shape[2:]
    return Preparation((height, width), form, [round(m, 4) for m in mean.tolist()], [round(s, 4) for s in std.tolist()])


def export_classifier(
    name: str,
    spec: ClassifierSpec,
    model: ViT,
    split: PictureSplit,
    preparation: Preparation,
    training: dict[str, Any],
    run: RunOptions,
) -> None:
    """Round to float16, score what ships on all test pictures, and write the files of a checkpoint.

    Args:
        training: what training.json has; the confusion matrix is added.
    """
    out, data = run.out, spec.data
    digest = ship_weights(model, out / "model.safetensors")
    log_p = predict(model, split.test, preparation)
    scores = {"accuracy": round(accuracy(log_p, split.test.labels), 2)}
    counts = torch.zeros(len(data.labels), len(data.labels), dtype=torch.long)
    counts.index_put_((split.test.labels.cpu(), log_p.argmax(dim=-1)), torch.ones(len(log_p)).long(), accumulate=True)
    training = {**training, "confusion": counts.tolist()}  # rows: what it is; columns: what the model said
    published = {
        "title": spec.title,
        "task": "classification",
        "licence": data.licence,
        "sha256": digest,
        "scores": scores,
        "parameters": sum(p.numel() for p in model.parameters()),
        "model": spec.architecture,
        "labels": list(data.labels),
        "pixels": preparation.config(),
    }
    write_checkpoint(out, published, training, _card(name, spec, published, training, split))
    record_reliability(read_classifier(read_card(out), out, run.device), split, out)


def _heads(most: dict[str, list[list[float]]] | None) -> str:
    """What training from the weights before did to heads that rest on one patch, as a section of a card."""
    if most is None:
        return ""
    rows = "\n".join(
        f"| {layer} | {max(before):.2f} | {sum(x > _MUCH for x in before)} | {max(after):.2f} | "
        f"{sum(x > _MUCH for x in after)} |"
        for layer, (before, after) in enumerate(zip(*most.values(), strict=True), start=1)
    )
    return f"""## Heads that rested on one patch

The last epochs, whose settings are above, began with the weights shipped before, whose heads gave most of their weight
to one patch of each picture. A penalty on a key's mean weight moved it; half of each target was what those weights
predicted. Largest mean weight of a head's queries on one key, over {_PICTURES_OF_HEADS} test pictures, and heads above
{_MUCH}:

| layer | largest before | heads | largest after | heads |
| --- | --- | --- | --- | --- |
{rows}

"""


def when_it_ended(lengths: list[dict[str, float | None]]) -> str:
    """State whether the length of the run can have been chosen by the test score.

    They cannot if its only length was set before the first update; an older run's first length is not known.
    """
    if [length["updates"] for length in lengths] == [0]:
        return """The length of the run was fixed before its first step,
and these pictures were scored after its last: no choice was made by them."""
    planned = [
        f"{length['epochs']} epochs" + (f" or {length['minutes']:g} minutes" if length["minutes"] else "")
        for length in lengths
    ]
    return f"""The length of the run was changed on its way (to {", then to ".join(planned)}):
these pictures may have had a say in when it ended, and the score may be a little hopeful."""


def _card(
    name: str, spec: ClassifierSpec, published: dict[str, Any], training: dict[str, Any], split: PictureSplit
) -> str:
    data, counts, config, last = spec.data, training["confusion"], training["recipe"], training["curve"][-1]
    by_label = "\n".join(
        f"| {label} | {sum(row):,} | {100 * row[i] / max(1, sum(row)):.1f}% |"
        for i, (label, row) in enumerate(zip(data.labels, counts, strict=True))
    )
    side = published["model"]["img_size"]
    channels = "grey" if len(published["pixels"]["mean"]) == 1 else "colour"
    return f"""# {published["title"]}

`{name}`: {spec.description},
{published["parameters"]:,} parameters, trained from scratch. Weights in float16.

## Scores

{published["scores"]["accuracy"]:.2f}% of {len(split.test.labels):,} test pictures right, each seen once as it is, with
the float16 weights. {when_it_ended(training["lengths"])}

| what it is | test pictures | right |
| --- | --- | --- |
{by_label}

## Data

{data.source}: {channels} pictures of {side} x {side} pixels. Licence: {data.licence}.
{len(split.train.labels):,} training pictures, {config["held_out"]:,} of them held out for the curve alone.

## Training

{last["epoch"]:.1f} epochs in {format_seconds(training["seconds"])} on {training["device"]}. The weights are the running
average of those of all steps; at the end {last["validation_accuracy"]:.1f}% of the held-out pictures were right.

| setting | value |
| --- | --- |
{settings_table(published["model"], config)}

{_heads(training.get("most_on_one_key"))}## Limits

It knows ten labels and gives every picture one of them, whatever it shows; how sure it sounds says little about
pictures unlike its training pictures. A picture of another size or colour is brought into their form first.
"""
