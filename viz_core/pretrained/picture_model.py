"""The interface of vision models: shipped classifiers and Hugging Face's vision models."""

from typing import Protocol, runtime_checkable

from jaxtyping import Float
from PIL import Image
from torch import Tensor

from viz_core.images.preprocessing import Prepared
from viz_core.pretrained import Classification


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
