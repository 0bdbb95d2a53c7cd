"""Calibration of a classifier, and distance of unfamiliar pictures from its training pictures."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypedDict

import numpy as np
import torch
from jaxtyping import Bool, Float, UInt8
from PIL import Image
from safetensors.torch import save_file
from torch import Tensor

from recipes.files import record
from recipes.picture_sets import PictureSplit
from viz_core.pretrained import ImageClassifier
from viz_core.pretrained.classifier import patch_mean
from viz_core.pretrained.familiarity import FILE, Familiarity

BINS = 10  # of the calibration
KNOWN = 0.95  # of held-out pictures are within the threshold
TRAINING_PICTURES = 8000  # that the spread is measured on: enough for a covariance of some hundred numbers
UNFAMILIAR = 64  # pictures of each kind that no data set holds


class Bin(TypedDict):
    """Pictures whose most likely label has a probability from `start` to `stop`; both means are from 0 to 1."""

    start: float
    stop: float
    pictures: int
    confidence: float  # mean probability of the most likely label
    accuracy: float  # share of pictures whose most likely label is correct


def calibration_bins(confidence: Float[Tensor, " n"], correct: Bool[Tensor, " n"]) -> list[Bin]:
    """Group pictures by confidence into ten bins of equal width; empty bins are left out (Guo 2017, section 2).

    Args:
        confidence: probability of each picture's most likely label.
        correct: whether that label is correct.
    """
    number = (confidence * BINS).long().clamp(max=BINS - 1)
    return [
        Bin(
            start=i / BINS,
            stop=(i + 1) / BINS,
            pictures=int((number == i).sum()),
            confidence=float(confidence[number == i].double().mean()),
            accuracy=float(correct[number == i].double().mean()),
        )
        for i in number.unique().tolist()
    ]


def expected_calibration_error(bins: Sequence[Bin]) -> float:
    """ECE = sum_b n_b / n |accuracy_b - confidence_b|, 0 to 1 (Guo 2017, equation 3)."""
    count = sum(each["pictures"] for each in bins)
    return sum(each["pictures"] * abs(each["accuracy"] - each["confidence"]) for each in bins) / count


def record_reliability(model: ImageClassifier, split: PictureSplit, folder: Path) -> None:
    """Measure both, and write them beside the checkpoint."""
    order = torch.randperm(len(split.train.labels), generator=torch.Generator().manual_seed(0))[:TRAINING_PICTURES]
    known = fit_familiarity(_predictions(model, split.train.pixels[order])[0])
    features, probabilities = _predictions(model, split.test.pixels)
    top = probabilities.max(dim=-1)
    bins = calibration_bins(top.values, top.indices == split.test.labels.cpu())
    threshold = float(known.distances(features).quantile(KNOWN))
    measured = {
        "calibration": {
            "pictures": len(features),
            "error": round(expected_calibration_error(bins), 4),
            "bins": [
                each | {"confidence": round(each["confidence"], 4), "accuracy": round(each["accuracy"], 4)}
                for each in bins
            ],
        },
        "familiarity": {
            "pictures": len(features),
            "known": KNOWN,
            "threshold": round(threshold, 3),
            "strange": {
                name: round(float((known.distances(_features(model, pixels)) > threshold).float().mean()), 4)
                for name, pixels in _unfamiliar(model).items()
            },
        },
    }
    save_familiarity(known, folder)
    record(folder, measured, _section(measured))


def fit_familiarity(features: Float[Tensor, "n d"], ridge: float = 1e-3) -> Familiarity:
    """Return mean and spread of training pictures; `ridge` times the mean variance is added to every variance."""
    x = features.double()
    mean = x.mean(dim=0)
    covariance = (x - mean).T @ (x - mean) / len(x)
    variance = covariance.diagonal().mean().clamp_min(torch.finfo(torch.float32).tiny)
    covariance += ridge * variance * torch.eye(x.shape[1], dtype=x.dtype)
    return Familiarity(mean.float(), torch.linalg.cholesky(torch.linalg.inv(covariance)).float())


def save_familiarity(known: Familiarity, folder: Path) -> None:
    """Write mean and spread beside a checkpoint."""
    save_file({"mean": known.mean, "whitening": known.whitening.contiguous()}, folder / FILE)


def _predictions(model: ImageClassifier, pixels: UInt8[Tensor, "n c h w"], rows: int = 250) -> tuple[Tensor, Tensor]:
    """Features and probabilities of pictures of the model's size."""
    prepared = (model.preparation.normalise(part.to(model.device)) for part in pixels.split(rows))
    found = [_features_and_probabilities(model, part) for part in prepared]
    features, probabilities = zip(*found, strict=True)
    return torch.cat(features), torch.cat(probabilities)


def _features(model: ImageClassifier, pictures: Sequence[Image.Image]) -> Float[Tensor, "n d"]:
    """Features of pictures of any size."""
    pixels = torch.cat([model.prepare(picture).pixels for picture in pictures])
    return _features_and_probabilities(model, pixels.to(model.device))[0]


@torch.inference_mode()
def _features_and_probabilities(
    model: ImageClassifier, pixels: Float[Tensor, "batch channels height width"]
) -> tuple[Float[Tensor, "batch d"], Float[Tensor, "batch classes"]]:
    tokens = model.model.tokens(pixels)
    return patch_mean(tokens).cpu(), model.model.head(tokens[:, 0]).float().softmax(dim=-1).cpu()


def _unfamiliar(model: ImageClassifier) -> dict[str, list[Image.Image]]:
    """Pictures unlike any data set: noise, one colour, and a red pixel on black or white."""
    random = np.random.default_rng(0)
    height, width = model.preparation.size
    noise = random.integers(0, 256, (UNFAMILIAR, height, width, 3), dtype=np.uint8)
    colours = np.broadcast_to(random.integers(0, 256, (UNFAMILIAR, 1, 1, 3), dtype=np.uint8), noise.shape)
    dots = np.zeros_like(noise)
    dots[::2] = 255
    dots[range(UNFAMILIAR), random.integers(0, height, UNFAMILIAR), random.integers(0, width, UNFAMILIAR)] = (255, 0, 0)
    kinds = {"noise": noise, "one colour": colours, "one red pixel": dots}
    return {name: [Image.fromarray(np.ascontiguousarray(each)) for each in kind] for name, kind in kinds.items()}


def _section(measured: dict[str, Any]) -> str:
    """The section of the card."""
    calibration, familiarity = measured["calibration"], measured["familiarity"]
    bins = "\n".join(
        f"| {b['start']:.0%} to {b['stop']:.0%} | {b['pictures']:,} | {b['confidence']:.1%} | {b['accuracy']:.1%} |"
        for b in calibration["bins"]
    )
    strange = ", ".join(f"{name} {share:.0%}" for name, share in familiarity["strange"].items())
    return f"""## Calibration

How often the likeliest label is right, by the probability it is given, on the {calibration["pictures"]:,} test
pictures. Expected calibration error (Guo 2017): {100 * calibration["error"]:.1f} points.

| it says | pictures | mean | right |
| --- | --- | --- | --- |
{bins}

Pictures unlike its training pictures are told by the Mahalanobis distance of the mean of their patches after the last
block: {familiarity["known"]:.0%} of the test pictures are within {familiarity["threshold"]:.1f}. Of {UNFAMILIAR}
pictures each of kinds that no data set holds, these are farther: {strange}.
"""
