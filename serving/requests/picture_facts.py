"""What is known of a vision model without a run."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from viz_core.pretrained.picture_model import PictureModel


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
