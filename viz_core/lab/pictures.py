"""Vision models without a run, their sample pictures, and what a token of a picture attends to over its patches."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor

from viz_core.maps.measures import attention_entropy, check_tokens, mean_attention_distance
from viz_core.maps.rollout import HeadFusion, attention_rollout, fuse_heads
from viz_core.pretrained import Classification
from viz_core.pretrained.classifier import ImageClassifier, PictureModel
from viz_core.pretrained.samples import GARMENTS, SCENES, drawn_picture, shipped_pictures
from viz_core.trace import HeadsOff, intervene, switched_off


class TokenRollout(NamedTuple):
    """One token's attention in one layer, and its rollout through all layers."""

    raw: Float[Tensor, " n"]  # weights of a layer whose heads are fused
    rollout: Float[Tensor, " n"]  # `attention_rollout` of all layers; sums to 1
    row_error: float  # max |1 - sum of a row| over all rows of the rollout; 0 up to rounding


def patch_positions(model: PictureModel, grid: tuple[int, int]) -> Float[Tensor, "1 patches num_hiddens"] | None:
    """The learned positions of a grid of patches; None where the model has no such table."""
    return model.position_table(grid)


def label_relevance(model: PictureModel, run: Classification, label: str) -> Float[Tensor, "tokens tokens"]:
    """Gradient-weighted relevance of each token (columns) to each (rows) for a label."""
    return model.relevance(run.prepared, label)


def token_in_layer(
    _model: PictureModel, run: Classification, token: int, layer: int, fusion: HeadFusion, discard: float
) -> TokenRollout:
    """A token's row of one layer's fused map and of the rollout."""
    layers = _layers(run)
    rolled = attention_rollout(layers, fusion, discard)
    error = float((rolled.sum(dim=-1) - 1).abs().max())
    return TokenRollout(fuse_heads(layers[layer], fusion)[token], rolled[token], error)


def heads_measured(model: PictureModel, run: Classification) -> dict[str, Float[Tensor, "layers heads"]]:
    """ "distance": mean attention distance in pixels, "entropy": mean over queries in bits, of every head."""
    stacked = torch.stack(_layers(run))
    return {
        "distance": mean_attention_distance(stacked, run.grid, model.patch_size, run.num_special),
        "entropy": attention_entropy(stacked).mean(dim=-1),
    }


def token_over_patches(
    _model: PictureModel, run: Classification, token: int
) -> Float[Tensor, "layers heads rows columns"]:
    """Weights of one token on the patches in every layer and head, as maps over the grid.

    The maps sum to 1 less what goes to the special tokens: weights are not divided anew.
    """
    maps = []
    for call in run.trace:
        check_tokens((call.num_queries, call.num_keys), run.grid, run.num_special)
        row = call.weights(queries=slice(token, token + 1))[0, :, 0, run.num_special :]
        maps.append(rearrange(row, "heads (r c) -> heads r c", r=run.grid[0]))
    return torch.stack(maps)


def _layers(run: Classification) -> list[Float[Tensor, "heads tokens tokens"]]:
    return [call.weights()[0] for call in run.trace]


@dataclass(frozen=True, eq=False)
class PictureFacts:
    """The properties of a `PictureModel` that need no run."""

    title: str
    labels: tuple[str, ...]
    patch_size: tuple[int, int]
    filters: Float[Tensor, "num_hiddens channels height width"]
    filter_bias: Float[Tensor, " num_hiddens"]


def picture_facts(model: PictureModel) -> PictureFacts:
    """Return the facts of a model."""
    return PictureFacts(model.title, model.labels, model.patch_size, model.filters, model.filter_bias)


_MODEL = "vit-fashion-mnist"


@dataclass(frozen=True, eq=False)
class PictureSamples:
    """Pictures as a model takes them, and the number of each one's label."""

    kind: Literal["test", "drawn"]  # "test" where they are of the test split, "drawn" where this project drew them
    pixels: Float[Tensor, "n channels height width"]
    labels: tuple[int, ...]


def count_samples(name: str, labels: tuple[str, ...]) -> tuple[Literal["test", "drawn"], int]:
    """Return the kind and number of sample pictures of a shipped model; 0 where none has one of its labels."""
    return ("test", len(shipped_pictures()[1])) if name == _MODEL else ("drawn", len(_drawn(labels)))


def sample_pictures(classifier: ImageClassifier, start: int, stop: int) -> PictureSamples:
    """Return a range of the sample pictures of this model.

    1,000 pictures of Fashion-MNIST's test split ship, under its licence (MIT). CIFAR-10's may not: there are the
    drawn ones that have one of its labels.
    """
    kind, _ = count_samples(classifier.card.name, classifier.labels)
    if kind == "test":
        pictures, numbers = shipped_pictures()
        pixels = torch.from_numpy(pictures[start:stop, None])
        return PictureSamples(kind, classifier.preparation.normalise(pixels), numbers[start:stop])
    drawn = _drawn(classifier.labels)[start:stop]
    made = [classifier.prepare(drawn_picture(name)).pixels for name in drawn]
    return PictureSamples(kind, torch.cat(made), tuple(classifier.labels.index(name) for name in drawn))


def right_statistics(
    classifier: ImageClassifier, off: HeadsOff, start: int, stop: int
) -> Float[np.ndarray, "pictures 2"]:
    """Return, for `percentage_right`, whether each picture is classified correctly with heads off (1 or 0), and 1."""
    pictures = sample_pictures(classifier, start, stop)
    with intervene(switched_off(off)):
        chances = classifier.predict(pictures.pixels)
    right = (chances.argmax(dim=-1) == torch.tensor(pictures.labels)).double()
    return torch.stack([right, torch.ones_like(right)], dim=1).numpy()


def _drawn(labels: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(name for name in (*GARMENTS, *SCENES) if name in labels)
