"""What the vision chapter asks of a model: the shipped classifiers and Hugging Face's vision models answer alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from jaxtyping import Float
from PIL import Image
from torch import Tensor

from viz_core.images.preprocessing import Prepared
from viz_core.pretrained import Classification


@runtime_checkable
class PictureModel(Protocol):
    """A vision transformer with its labels and its way to prepare pictures. Nothing of a call is kept on it."""

    @property
    def title(self) -> str:
        """What it is called, for people."""

    @property
    def labels(self) -> tuple[str, ...]:
        """What it can say is on a picture, each once; () where it only looks."""

    @property
    def patch_size(self) -> tuple[int, int]:
        """Height and width of a patch in pixels."""

    @property
    def filters(self) -> Float[Tensor, "num_hiddens channels height width"]:
        """The patch embedding's matrix, a filter a row: row i of W patch + b is filter i laid on the patch."""

    @property
    def filter_bias(self) -> Float[Tensor, "num_hiddens"]:
        """What is added: b."""

    def prepare(self, image: Image.Image) -> Prepared:
        """The picture as the model takes it: any mode and size in, its own size out."""

    def look(self, prepared: Prepared) -> Classification:
        """What is on the picture, with all attention recorded."""

    def predict(
        self, pixels: Float[Tensor, "batch channels height width"], positions: bool = True
    ) -> Float[Tensor, "batch classes"]:
        """Probabilities of every label, in the order of `labels`; without positions a picture is a bag of patches."""

    def relevance(self, prepared: Prepared, label: str) -> Float[Tensor, "tokens tokens"]:
        """Gradient-weighted relevance of each token (columns) to each (rows) for this label."""

    def position_table(self, grid: tuple[int, int]) -> Float[Tensor, "1 patches num_hiddens"] | None:
        """The learned positions of a grid of patches; None where none are learned."""


@dataclass(frozen=True, eq=False)
class PictureFacts:
    """What can be read off a picture model without running it: see `PictureModel`, whose names these are."""

    title: str
    labels: tuple[str, ...]
    patch_size: tuple[int, int]
    filters: Float[Tensor, "num_hiddens channels height width"]
    filter_bias: Float[Tensor, "num_hiddens"]


def picture_facts(model: PictureModel) -> PictureFacts:
    """All of these at once."""
    return PictureFacts(model.title, model.labels, model.patch_size, model.filters, model.filter_bias)
