"""How far a picture is from those a vision transformer was trained on, by what its patches have become."""

import math
from dataclasses import dataclass
from pathlib import Path

from jaxtyping import Float
from torch import Tensor

from viz_core.pretrained.card import CheckpointError, ModelCard, parsing
from viz_core.pretrained.checkpoint import read_tensors

FILE = "familiarity.safetensors"


@dataclass(frozen=True)
class Distance:
    """How far a picture is, and the distance that 95% of held-out pictures keep within."""

    value: float
    threshold: float

    @property
    def is_unfamiliar(self) -> bool:
        """Whether it is farther than nearly all of them."""
        return self.value > self.threshold


@dataclass(frozen=True)
class Familiarity:
    """Mean and spread of training pictures, each told by the mean of its patches after the last block."""

    mean: Float[Tensor, " d"]
    whitening: Float[Tensor, "d d"]
    threshold: float = math.inf  # the distance that 95% of held-out pictures keep within

    def distances(self, features: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
        """Mahalanobis distances d(x) = sqrt((x - m)^T C^-1 (x - m)), for all classes together.

        (Lee 2018, "A Simple Unified Framework for Detecting Out-of-Distribution Samples", equation 2; with one mean for
        all classes, Kamoi and Kobayashi 2020, section 3.2.)
        """
        return ((features.float().cpu() - self.mean) @ self.whitening).norm(dim=-1)


def read_familiarity(card: ModelCard, folder: Path, num_hiddens: int) -> Familiarity | None:
    """What was measured of a model, or None. CheckpointError if its file is missing, truncated or of another model."""
    if "familiarity" not in card.training:
        return None
    tensors = read_tensors(folder / FILE)
    with parsing(folder / FILE):
        threshold = float(card.training["familiarity"]["threshold"])
        known = Familiarity(tensors["mean"], tensors["whitening"], threshold)
    if known.mean.shape != (num_hiddens,) or known.whitening.shape != (num_hiddens, num_hiddens):
        raise CheckpointError(
            "{file} does not fit the model: expected a width of {expected}, got {got}",
            file=FILE,
            expected=num_hiddens,
            got=str(tuple(known.mean.shape)),
        )
    return known
