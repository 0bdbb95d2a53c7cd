"""The permutation test: predictions for a picture with shuffled patches, with and without positions."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from viz_core.lessons.vision_transformer.patches import shuffle_patches


@dataclass(frozen=True)
class PermutationTest:
    """Probabilities of each class for the picture as it is and with its patches shuffled."""

    positions: Float[Tensor, " classes"]
    positions_shuffled: Float[Tensor, " classes"]
    no_positions: Float[Tensor, " classes"]
    no_positions_shuffled: Float[Tensor, " classes"]

    @property
    def change(self) -> float:
        """Largest change of a probability by shuffling, with positions."""
        return float((self.positions - self.positions_shuffled).abs().max())

    @property
    def residual(self) -> float:
        """The same without positions: 0 up to rounding, since a sum over tokens has no order."""
        return float((self.no_positions - self.no_positions_shuffled).abs().max())


def permutation_test(
    predict: Callable[[Tensor, bool], Tensor],
    X: Float[Tensor, "1 channels height width"],
    patch_size: tuple[int, int],
    order: Int[Tensor, " patches"],
) -> PermutationTest:
    """Classify a picture and its shuffled version, with and without positions.

    Args:
        predict: (pictures, whether with positions) to the probabilities (pictures, classes).
    """
    both = torch.cat((X, shuffle_patches(X, patch_size, order)))
    seen, bag = predict(both, True), predict(both, False)
    return PermutationTest(seen[0], seen[1], bag[0], bag[1])


def random_order(num_patches: int, seed: int = 0) -> Int[Tensor, " patches"]:
    """A shuffled order of patches, the same for a seed on every machine."""
    return torch.randperm(num_patches, generator=torch.Generator().manual_seed(seed))
