"""Patches: cut, put together, shuffled, what a model learns of them, and rollout along a wrong axis."""

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor

from viz_core.maps.rollout import HeadFusion, discard_smallest, fuse_heads
from viz_core.models.vit import PatchEmbedding, count_patches
from viz_core.pretrained import Classification
from viz_core.pretrained.classifier import PictureModel

Pictures: TypeAlias = Float[Tensor, "batch channels height width"]
Vectors: TypeAlias = Float[Tensor, "batch patches pixels"]
Filters: TypeAlias = Float[Tensor, "num_hiddens channels height width"]
Order: TypeAlias = Int[Tensor, " patches"]
Size: TypeAlias = tuple[int, int]


def patchify(X: Pictures, patch_size: Size) -> Vectors:
    """Each patch as the vector it becomes: channel by channel, row by row; patches row by row.

    A patch embedding is this times a matrix: patchify(X) @ W^T + b with W = conv.weight, its filters as rows.
    """
    count_patches((X.shape[-2], X.shape[-1]), patch_size)
    height, width = patch_size
    return rearrange(X, "b ch (r h) (c w) -> b (r c) (ch h w)", h=height, w=width)


def unpatchify(patches: Vectors, grid: Size, patch_size: Size) -> Pictures:
    """The picture that these patches make: the inverse of `patchify`."""
    height, width = patch_size
    return rearrange(patches, "b (r c) (ch h w) -> b ch (r h) (c w)", r=grid[0], h=height, w=width)


def shuffle_patches(X: Pictures, patch_size: Size, order: Order) -> Pictures:
    """The picture with its patches in another order: place i shows patch order[i]."""
    grid = count_patches((X.shape[-2], X.shape[-1]), patch_size)
    patches = patchify(X, patch_size)
    return unpatchify(patches[:, order.to(X.device)], grid, patch_size)


def position_similarity(
    pos_embedding: Float[Tensor, "1 tokens d"], grid: Size, num_special: int = 1
) -> Float[Tensor, "rows columns rows columns"]:
    """Cosine similarity of each patch's position embedding with every other's (Dosovitskiy 2021, figure 7, centre)."""
    if pos_embedding.shape[1] != num_special + grid[0] * grid[1]:
        expected = f"{num_special} + {grid[0]} x {grid[1]}"
        raise ValueError(f"pos_embedding: expected {expected} positions, got {pos_embedding.shape[1]}")
    directions = F.normalize(pos_embedding[0, num_special:].detach().float(), dim=-1)
    similarity = (directions @ directions.T).clamp(-1.0, 1.0)
    return rearrange(similarity, "(r c) (s d) -> r c s d", r=grid[0], s=grid[0])


def principal_filters(weight: Filters, count: int) -> Float[Tensor, "count channels height width"]:
    """The first `count` principal components of the patch embedding's filters, each with norm 1.

    Right singular vectors of the matrix whose rows are the filters (Dosovitskiy 2021, figure 7, left, shows the first
    28 principal components). The sign of a pattern means nothing: its largest pixel is made positive.
    """
    filters = weight.detach().float().flatten(start_dim=1)
    patterns = torch.linalg.svd(filters, full_matrices=False).Vh[:count]
    largest = patterns.gather(1, patterns.abs().argmax(dim=1, keepdim=True))
    return (patterns * largest.sign()).reshape(count, *weight.shape[1:])


def neighbour_similarity(similarity: Float[Tensor, "rows columns"], row: int, column: int) -> float:
    """The mean similarity of a position and its neighbours to the left and right; with itself where it has none."""
    beside = [similarity[row, c] for c in (column - 1, column + 1) if 0 <= c < similarity.shape[1]]
    return float(torch.stack(beside or [similarity[row, column]]).mean())


class EmbeddedPatches(NamedTuple):
    """A picture's patches as vectors and as tokens."""

    vectors: Float[Tensor, "patches pixels"]  # the pixels of each patch
    tokens: Float[Tensor, "patches num_hiddens"]  # each vector times the filters, plus their bias
    convolved: Float[Tensor, "patches num_hiddens"]  # the same by one convolution whose stride is the patch size

    @property
    def error(self) -> float:
        """max |tokens - convolved|, relative to the largest of them."""
        scale = max(float(self.convolved.abs().max()), 1e-12)
        return float((self.tokens - self.convolved).abs().max()) / scale


def embed_patches(
    pixels: Float[Tensor, "1 channels height width"],
    filters: Float[Tensor, "num_hiddens channels patch_height patch_width"],
    bias: Float[Tensor, " num_hiddens"],
) -> EmbeddedPatches:
    """The patches of a picture embedded by a matrix product and by a convolution."""
    patch_size = (filters.shape[-2], filters.shape[-1])
    vectors = patchify(pixels, patch_size)[0]
    convolved = F.conv2d(pixels, filters, bias, stride=patch_size)[0].flatten(start_dim=1).T
    return EmbeddedPatches(vectors, vectors @ filters.flatten(start_dim=1).T + bias, convolved)


def book_shape() -> tuple[int, ...]:
    """The shape of four pictures of 96 x 96 pixels as patches of 16 x 16, 512 wide (Dive into Deep Learning, 11.8)."""
    return tuple(PatchEmbedding(96, 16, 512)(torch.ones(4, 3, 96, 96)).shape)


class PermutationTest(NamedTuple):
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
    patch_size: Size,
    order: Order,
) -> PermutationTest:
    """Classify a picture and its shuffled version; `predict` takes pictures, and whether with positions."""
    both = torch.cat((X, shuffle_patches(X, patch_size, order)))
    seen, bag = predict(both, True), predict(both, False)
    return PermutationTest(seen[0], seen[1], bag[0], bag[1])


def random_order(num_patches: int, seed: int = 0) -> Order:
    """A shuffled order of patches, the same for a seed on every machine."""
    return torch.randperm(num_patches, generator=torch.Generator().manual_seed(seed))


def patches_shuffled(model: PictureModel, run: Classification, seed: int) -> PermutationTest:
    """The permutation test with the order of patches that belongs to a seed."""
    order = random_order(run.grid[0] * run.grid[1], seed)
    return permutation_test(model.predict, run.prepared.pixels, model.patch_size, order)


def columns_divided(_model: PictureModel, run: Classification, fusion: HeadFusion, discard: float) -> float:
    """max |row sum - 1| of a rollout with `a / a.sum(dim=-1)`: without keepdim, row sums divide the columns."""
    reached = torch.eye(run.trace[run.trace.sites[0]].num_keys)
    for call in run.trace:
        mixed = discard_smallest(fuse_heads(call.weights()[0], fusion), discard)
        mixed = mixed + torch.eye(len(mixed))
        reached = mixed / mixed.sum(dim=-1) @ reached
    return float((reached.sum(dim=-1) - 1).abs().max())
