"""Export a trained classifier: float16 weights, config, scores, curves and a card."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from recipes.classification import ClassifierConfig, accuracy, predict
from recipes.files import format_seconds, settings_table, ship_weights, write_json
from recipes.loop import TrainingState
from recipes.picture_sets import PictureSet, PictureSplit
from recipes.reliability import record_reliability
from viz_core.images.preprocessing import Preparation
from viz_core.models.vit import ViT
from viz_core.pretrained.card import read_card
from viz_core.pretrained.classifier import read_classifier
from viz_core.runtime.device import describe_device


def export_classifier(
    name: str,
    title: str,
    description: str,
    architecture: dict[str, Any],
    model: ViT,
    data: PictureSet,
    split: PictureSplit,
    preparation: Preparation,
    state: TrainingState,
    config: ClassifierConfig,
    out: Path,
    device: torch.device,
) -> dict[str, float]:
    """Round to float16, score what ships on all test pictures, and write the four files of a checkpoint.

    Returns:
        The scores: accuracy in percent.
    """
    digest = ship_weights(model, out / "model.safetensors")
    log_p = predict(model, split.test, preparation)
    scores = {"accuracy": round(accuracy(log_p, split.test.labels), 2)}
    counts = torch.zeros(len(data.labels), len(data.labels), dtype=torch.long)
    counts.index_put_((split.test.labels.cpu(), log_p.argmax(dim=-1)), torch.ones(len(log_p)).long(), accumulate=True)
    training = {
        "curve": state.curve,
        "updates": state.updates,
        "lengths": state.lengths,  # what was to be its end; several if that changed on the way
        "confusion": counts.tolist(),  # rows: what it is; columns: what the model said
        "seconds": round(state.elapsed),
        "device": describe_device(device),
        "recipe": asdict(config),
    }
    published = {
        "title": title,
        "task": "classification",
        "licence": data.licence,
        "sha256": digest,
        "scores": scores,
        "parameters": sum(p.numel() for p in model.parameters()),
        "model": architecture,
        "labels": list(data.labels),
        "pixels": preparation.config(),
    }
    write_json(out / "training.json", training)
    write_json(out / "config.json", published)
    (out / "card.md").write_text(_card(name, description, published, training, data, split), encoding="utf-8")
    record_reliability(read_classifier(read_card(out), out, device), split, out)
    print(json.dumps(scores), flush=True)
    return scores


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
    name: str,
    description: str,
    published: dict[str, Any],
    training: dict[str, Any],
    data: PictureSet,
    split: PictureSplit,
) -> str:
    counts, config, last = training["confusion"], training["recipe"], training["curve"][-1]
    by_label = "\n".join(
        f"| {label} | {sum(row):,} | {100 * row[i] / max(1, sum(row)):.1f}% |"
        for i, (label, row) in enumerate(zip(data.labels, counts, strict=True))
    )
    side = published["model"]["img_size"]
    channels = "grey" if len(published["pixels"]["mean"]) == 1 else "colour"
    return f"""# {published["title"]}

`{name}`: {description},
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

## Limits

It knows ten labels and gives every picture one of them, whatever it shows; how sure it sounds says little about
pictures unlike its training pictures. A picture of another size or colour is brought into their form first.
"""
