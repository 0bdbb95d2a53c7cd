"""The shipped vision transformers, which classify pictures and record their attention."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch
from jaxtyping import Float
from PIL import Image
from torch import Tensor

from viz_core.images.preprocessing import Preparation, Prepared
from viz_core.maps.rollout import relevance_maps
from viz_core.models.vit import ViT, interpolate_positions
from viz_core.pretrained.checkpoint import build_network, load_weights
from viz_core.pretrained.familiarity import Distance, Familiarity, read_familiarity
from viz_core.pretrained.shipped import CheckpointError, ModelCard
from viz_core.runtime.assets import UNKNOWN, Provenance
from viz_core.runtime.hooks import show
from viz_core.trace import Trace, record


@dataclass(frozen=True)
class Classification:
    """A picture's classification with its attention.

    Token 0 of every map is the class token, token 1 + r C + c the patch in row r and column c of `grid`
    (rows, columns C).
    """

    label: str
    probabilities: dict[str, float]  # of every label, the most likely first; they sum to 1
    grid: tuple[int, int]
    trace: Trace
    prepared: Prepared  # the model's input, and how it was made
    made: Provenance = UNKNOWN  # by which model
    distance: Distance | None = None  # from the pictures the model was trained on, where that was measured

    def __repr__(self) -> str:
        """The label with its probability, the grid and the trace, in one line."""
        label = f"{self.label!r} {self.probabilities.get(self.label, 0):.0%}"
        return f"Classification({label}, {self.grid[0]} x {self.grid[1]} patches, {self.trace!r})"

    def view(self) -> Any:
        """Return the attention view of all maps, as `viz_core.view` does."""
        return show(self)

    @property
    def num_special(self) -> int:
        """Tokens before the patches: the class token, and registers where a model has them."""
        return next(iter(self.trace)).num_keys - self.grid[0] * self.grid[1]


@dataclass(frozen=True)
class ImageClassifier:
    """A shipped vision transformer with its labels. Safe to share between threads: calls store nothing."""

    card: ModelCard
    model: ViT
    labels: tuple[str, ...]
    preparation: Preparation
    device: torch.device
    familiarity: Familiarity | None = None  # with the pictures it was trained on, where that was measured

    def __repr__(self) -> str:
        """The model's name, its device and its number of labels."""
        return f"ImageClassifier({self.card.name!r} on {self.device}: {len(self.labels)} labels)"

    @property
    def network(self) -> ViT:
        """The torch module."""
        return self.model

    @property
    def title(self) -> str:
        """Name for display."""
        return self.card.title

    @property
    def patch_size(self) -> tuple[int, int]:
        """Height and width of a patch in pixels."""
        return self.model.patch_embedding.patch_size

    @property
    def filters(self) -> Float[Tensor, "num_hiddens channels height width"]:
        """The patch embedding's matrix, one filter per row."""
        return self.model.patch_embedding.conv.weight.cpu()

    @property
    def filter_bias(self) -> Float[Tensor, " num_hiddens"]:
        """The patch embedding's bias."""
        bias = self.model.patch_embedding.conv.bias
        return torch.zeros(len(self.filters)) if bias is None else bias.cpu()

    def position_table(self, grid: tuple[int, int]) -> Float[Tensor, "1 patches num_hiddens"]:
        """The learned positions of a grid of patches."""
        return interpolate_positions(self.model.pos_embedding, self.model.grid, grid)[:, 1:].cpu()

    def prepare(self, image: Image.Image) -> Prepared:
        """Return a picture of any mode and size, resized and normalised for the model."""
        return self.preparation(image)

    def classify(self, image: Image.Image) -> Classification:
        """Classify a picture of any mode and size, and record all attention."""
        return self.classify_prepared(self.prepare(image))

    @torch.inference_mode()
    def predict(
        self, pixels: Float[Tensor, "batch channels height width"], positions: bool = True
    ) -> Float[Tensor, "batch classes"]:
        """Probabilities of every label; without positions a picture is a bag of patches."""
        return self.model(pixels.to(self.device), positions).float().softmax(dim=-1).cpu()

    @torch.inference_mode()
    def classify_prepared(self, prepared: Prepared, positions: bool = True) -> Classification:
        """Classify a prepared picture; without positions it is a bag of patches.

        Raises:
            ValueError: if patches do not divide the picture, or it has other channels than the model.
        """
        X = prepared.pixels.to(self.device)
        with record() as trace:
            tokens = self.model.tokens(X, positions)
        chances = self.model.head(tokens[:, 0])[0].float().softmax(dim=-1).cpu()
        order = chances.argsort(descending=True, stable=True).tolist()
        probabilities = {self.labels[i]: float(chances[i]) for i in order}
        made = Provenance(self.card.name, self.card.revision)
        grid = self.model.patch_embedding.grid(X)
        distance = None
        if self.familiarity is not None:
            distance = Distance(float(self.familiarity.distances(patch_mean(tokens))[0]), self.familiarity.threshold)
        return Classification(self.labels[order[0]], probabilities, grid, trace, prepared, made, distance)

    def relevance(self, prepared: Prepared, label: str) -> Float[Tensor, "tokens tokens"]:
        """Gradient-weighted relevance of each token (columns) to each (rows, the class token's first) for this label.

        Raises:
            ValueError: if the model has no such label.
        """
        if label not in self.labels:
            raise ValueError(f"label: expected one of {', '.join(self.labels)}, got {label!r}")
        with torch.enable_grad(), record(differentiable=True) as trace:
            logits = self.model(prepared.pixels.to(self.device))
            return relevance_maps(trace, logits[0, self.labels.index(label)])


def read_classifier(card: ModelCard, folder: Path, device: torch.device) -> ImageClassifier:
    """The classifier whose files lie in `folder`, in evaluation mode.

    CheckpointError if a file is missing, truncated or altered, or does not fit the others.
    """
    model = build_classification_model(card.config.get("model", {}))
    labels = card.config.get("labels")
    num_classes = model.head[1].out_features
    if not isinstance(labels, list) or len(set(labels)) != num_classes or len(labels) != num_classes:
        raise CheckpointError(
            "config.json does not fit the model: expected {expected} different labels", expected=num_classes
        )
    try:
        preparation = Preparation(size=model.patch_embedding.img_size, **card.config["pixels"])
    except (KeyError, TypeError, ValueError) as error:
        raise CheckpointError(
            "config.json does not say how pictures are prepared: {detail}", detail=str(error)
        ) from None
    if len(preparation.mean) != model.patch_embedding.conv.in_channels:
        raise CheckpointError(
            "config.json does not fit the model: expected {expected} channels, got {got}",
            expected=model.patch_embedding.conv.in_channels,
            got=len(preparation.mean),
        )
    load_weights(model, folder / "model.safetensors", card.config.get("sha256"))
    frozen = model.to(device).eval().requires_grad_(False)
    known = read_familiarity(card, folder, model.cls_token.shape[-1])
    return ImageClassifier(card, frozen, tuple(map(str, labels)), preparation, device, known)


def patch_mean(tokens: Float[Tensor, "batch tokens d"]) -> Float[Tensor, "batch d"]:
    """Mean of the patches after the last block, by which `Familiarity` knows a picture."""
    return tokens[:, 1:].mean(dim=1).float()


def build_classification_model(config: dict[str, Any]) -> ViT:
    """The model a config describes: "architecture" (vit) and the sizes it takes."""
    return build_network(config, {"vit": ViT})


@runtime_checkable
class PictureModel(Protocol):
    """A vision transformer with its labels and its way to prepare pictures. Calls store nothing."""

    @property
    def title(self) -> str:
        """Name for display."""

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels, each once; () for a model without a classifier."""

    @property
    def patch_size(self) -> tuple[int, int]:
        """Height and width of a patch in pixels."""

    @property
    def filters(self) -> Float[Tensor, "num_hiddens channels height width"]:
        """The patch embedding's matrix, one filter per row; row i of W patch + b is filter i applied to the patch."""

    @property
    def filter_bias(self) -> Float[Tensor, " num_hiddens"]:
        """The patch embedding's bias b."""

    def prepare(self, image: Image.Image) -> Prepared:
        """Return a picture of any mode and size, resized and normalised for the model."""

    def classify_prepared(self, prepared: Prepared) -> Classification:
        """Classify a prepared picture, and record all attention."""

    def predict(
        self, pixels: Float[Tensor, "batch channels height width"], positions: bool = True
    ) -> Float[Tensor, "batch classes"]:
        """Probabilities of every label, in the order of `labels`; without positions a picture is a bag of patches."""

    def relevance(self, prepared: Prepared, label: str) -> Float[Tensor, "tokens tokens"]:
        """Gradient-weighted relevance of each token (columns) to each (rows) for this label."""

    def position_table(self, grid: tuple[int, int]) -> Float[Tensor, "1 patches num_hiddens"] | None:
        """The learned positions of a grid of patches; None where none are learned."""
