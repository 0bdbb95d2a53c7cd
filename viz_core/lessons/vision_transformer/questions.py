"""Functions of a vision model and its run on a picture, evaluated where the model is."""

from jaxtyping import Float
from torch import Tensor

from viz_core.lessons.vision_transformer.patches import PermutationTest, permutation_test, random_order
from viz_core.lessons.vision_transformer.token_maps import (
    TokenRollout,
    heads_by_depth,
    token_attention,
    token_by_depth,
    token_rollout,
)
from viz_core.maps.rollout import HeadFusion
from viz_core.pretrained import Classification
from viz_core.pretrained.picture_model import PictureModel


def patch_positions(model: PictureModel, grid: tuple[int, int]) -> Float[Tensor, "1 patches num_hiddens"] | None:
    """The learned positions of a grid of patches; None where the model has no such table."""
    return model.position_table(grid)


def label_relevance(model: PictureModel, run: Classification, label: str) -> Float[Tensor, "tokens tokens"]:
    """Gradient-weighted relevance of each token (columns) to each (rows) for a label."""
    return model.relevance(run.prepared, label)


def patches_shuffled(model: PictureModel, run: Classification, seed: int) -> PermutationTest:
    """The permutation test with the order of patches that belongs to a seed."""
    order = random_order(run.grid[0] * run.grid[1], seed)
    return permutation_test(model.predict, run.prepared.pixels, model.patch_size, order)


def token_in_layer(
    _model: PictureModel, run: Classification, token: int, layer: int, fusion: HeadFusion, discard: float
) -> TokenRollout:
    """A token's attention in one layer, and its rollout through all layers."""
    return token_rollout(_layers(run), token, layer, fusion, discard)


def token_through_layers(
    _model: PictureModel, run: Classification, token: int
) -> tuple[Float[Tensor, "layers n"], Float[Tensor, "layers n"]]:
    """A token's attention in each layer, and its rollout up to there."""
    return token_by_depth(_layers(run), token)


def heads_measured(model: PictureModel, run: Classification) -> dict[str, Float[Tensor, "layers heads"]]:
    """ "distance" and "entropy" of every head."""
    return heads_by_depth(_layers(run), run.grid, model.patch_size, run.num_special)


def token_over_patches(
    _model: PictureModel, run: Classification, token: int
) -> Float[Tensor, "layers heads rows columns"]:
    """What a token attends to in every head, over the patches."""
    return token_attention(run.trace, token, run.grid, run.num_special)


def _layers(run: Classification) -> list[Float[Tensor, "heads tokens tokens"]]:
    return [call.weights()[0] for call in run.trace]
