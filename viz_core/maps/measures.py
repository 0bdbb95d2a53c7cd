"""Formulas on attention maps: entropy, shares of attention, distance between maps, several heads as one map."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from viz_core.trace.arguments import check_axes, check_device, check_tensors, check_whole, described, is_whole
from viz_core.trace.edits import indices_of


def attention_entropy(weights: Float[Tensor, "*batch queries keys"]) -> Float[Tensor, "*batch queries"]:
    """Entropy of each query's attention in bits: 0 for one key, log2(keys) for all keys alike.

    H_i = - sum_j w_ij log2 w_ij, with 0 log 0 = 0 (Shannon 1948, section 6).

    A row of zeros (every key masked) has entropy 0.

    Raises:
        ValueError: if weights are not a floating-point tensor (..., queries, keys), or a row holds a negative one.
    """
    check_tensors(weights=weights)
    check_axes("... queries keys", weights=weights)
    if weights.numel() and (smallest := weights.amin().item()) < 0:
        raise ValueError(f"weights: expected none below 0, got {smallest:.3g}")
    # xlogy would guard 0 log 0 as well, at three times the cost, which long maps feel.
    logs = weights.clamp_min(torch.finfo(weights.dtype).tiny).log_()
    nats = 0.0 - logs.mul_(weights).sum(dim=-1)  # not -x, which would make -0 of 0
    # A softmax may round its largest weight to a hair above 1, whose term would be a hair below 0.
    return (nats / math.log(2)).clamp_min(0.0)


def diagonal_mass(weights: Float[Tensor, "*batch n n"]) -> Float[Tensor, "*batch"]:
    """Mean weight of a token on itself, 0 to 1: 1/n sum_i w_ii (Clark 2019, "What Does BERT Look At?", section 3).

    Raises:
        ValueError: if queries and keys are not equally many, or there are none.
    """
    check_tensors(weights=weights)
    if weights.dim() < 2 or weights.shape[-2] != weights.shape[-1] or not weights.shape[-1]:
        raise ValueError(f"weights: expected as many queries as keys, got shape {tuple(weights.shape)}")
    return offset_sum(weights) / weights.shape[-1]


def offset_mass(weights: Float[Tensor, "*batch n n"], offset: int) -> Float[Tensor, "*batch"]:
    """Mean weight on the token at `offset` (-1 the previous, 1 the next), over tokens that have one: 0 to 1.

    M_o = mean_i w_(i, i+o) over 0 <= i + o < n (Voita 2019, "Analyzing Multi-Head Self-Attention",
    section 4.1, where heads with much of it are called positional). Offset 0 is `diagonal_mass`.

    Raises:
        ValueError: if queries and keys are not equally many, or no token has one at that offset.
    """
    check_tensors(weights=weights)
    check_whole(-weights.numel(), offset=offset)
    if weights.dim() < 2 or weights.shape[-2] != weights.shape[-1] or abs(offset) >= weights.shape[-1]:
        raise ValueError(
            f"weights: expected as many queries as keys, and more than {abs(offset)}, got shape {tuple(weights.shape)}"
        )
    return offset_sum(weights, offset) / (weights.shape[-1] - abs(offset))


def offset_sum(weights: Float[Tensor, "*batch rows keys"], offset: int = 0) -> Float[Tensor, "*batch"]:
    """sum_i w_(i, i+offset) over the rows i that have such a key."""
    return weights.diagonal(offset, dim1=-2, dim2=-1).sum(dim=-1)


def key_mass(weights: Float[Tensor, "*batch queries keys"], keys: Sequence[int]) -> Float[Tensor, "*batch"]:
    """Mean over queries of the weight on these keys, 0 to 1.

    M = mean_i sum_(j in keys) w_ij. With the first token alone it finds attention sinks (Xiao 2024,
    section 3.1), with [SEP] the heads that do nothing (Clark 2019, section 3.2).

    Raises:
        ValueError: if there is no query, or no such key.
    """
    check_tensors(weights=weights)
    if weights.dim() < 2 or not weights.shape[-2]:
        raise ValueError(f"weights: expected at least one query, got shape {tuple(weights.shape)}")
    places = dict.fromkeys(indices_of("keys", keys))
    if any(place >= weights.shape[-1] for place in places):
        raise ValueError(f"keys: expected 0 to {weights.shape[-1] - 1}, got {list(places)}")
    return weights[..., list(places)].sum(dim=-1).mean(dim=-1)


def target_mass(
    weights: Float[Tensor, "*batch queries keys"], targets: Bool[Tensor, "queries keys"]
) -> Float[Tensor, "*batch"]:
    """Mean weight on each query's target keys, over queries that have any: 0 to 1.

    M = mean_(i: some T_ij) sum_j T_ij w_ij.

    Raises:
        ValueError: if the targets are not of as many queries and keys, or there is none.
    """
    check_tensors(weights=weights)
    if not isinstance(targets, Tensor) or targets.dtype != torch.bool:
        raise ValueError(f"targets: expected booleans, True where a query has a target, got {described(targets)}")
    check_device(weights=weights, targets=targets)
    if weights.shape[-2:] != targets.shape:
        raise ValueError(f"weights: expected {tuple(targets.shape)} as the targets are, got {tuple(weights.shape)}")
    num_queries = int(targets.any(dim=-1).sum())
    if not num_queries:
        raise ValueError("targets: expected a query that has one, got none")
    return weights.flatten(-2) @ targets.flatten().to(weights.dtype) / num_queries


def induction_mass(weights: Float[Tensor, "*batch n n"], tokens: Sequence[object]) -> Float[Tensor, "*batch"]:
    """Mean weight on the tokens that followed earlier copies of the query's token, over repeated tokens: 0 to 1.

    M = mean_i sum_(j < i, t_j = t_i) w_(i, j+1): prefix matching, by which induction heads repeat what came next
    (Olsson 2022, section "Induction heads", and Elhage 2021).

    Raises:
        ValueError: if queries, keys and tokens are not equally many, or no token comes twice.
    """
    check_tensors(weights=weights)
    n = len(tokens)
    if weights.shape[-2:] != (n, n):
        raise ValueError(f"weights: expected {n} queries and keys, as there are tokens, got {tuple(weights.shape)}")
    after = induction_targets(tokens)
    if not after.any():
        raise ValueError(f"tokens: expected one that comes twice, got {n} that all differ")
    return target_mass(weights, after)


def induction_targets(tokens: Sequence[object]) -> Bool[Tensor, "n n"]:
    """True at (i, j + 1) where an earlier token j equals the query's token: j < i and t_j = t_i."""
    after = equal_tokens(tokens, tokens).roll(1, dims=1).tril()
    after[:, :1] = False
    return after


def equal_tokens(queries: Sequence[object], keys: Sequence[object]) -> Bool[Tensor, "queries keys"]:
    """True where query and key are the same token, t_i = t_j."""
    numbers: dict[object, int] = {}
    rows, columns = (torch.tensor([numbers.setdefault(t, len(numbers)) for t in each]) for each in (queries, keys))
    return rows[:, None] == columns


def total_variation(
    first: Float[Tensor, "*batch queries keys"], second: Float[Tensor, "*batch queries keys"]
) -> Float[Tensor, "*batch"]:
    """Mean over queries of the total variation distance between the rows of two maps, 0 to 1.

    V = mean_i 1/2 sum_j |w_ij - w'_ij| (Levin and Peres 2017, "Markov Chains and Mixing Times", proposition 4.2).

    Raises:
        ValueError: if the maps are not equally large, or there is no query.
    """
    check_tensors(first=first, second=second)
    if first.shape != second.shape or first.dim() < 2 or not first.shape[-2]:
        raise ValueError(f"expected two maps of one size, got {tuple(first.shape)} and {tuple(second.shape)}")
    return (first - second).abs().sum(dim=-1).mean(dim=-1) / 2


def scaled_rows(weights: Float[Tensor, "*batch queries keys"]) -> Float[Tensor, "*batch queries keys"]:
    """Return w_ij / sum_j |w_ij|: signed rows whose sizes sum to 1, so that `total_variation` of two is 0 to 1.

    A row of zeros stays zeros.
    """
    check_tensors(weights=weights)
    return weights / weights.abs().sum(dim=-1, keepdim=True).clamp_min(torch.finfo(weights.dtype).tiny)


def weight_shares(weights: Float[Tensor, "*batch queries keys"]) -> Float[Tensor, "*batch queries keys"]:
    """Return |w_ij| / sum_j |w_ij|: of signed maps how much of a row's weight, whatever its sign, is on each key.

    A row of zeros stays zeros.
    """
    return scaled_rows(weights).abs()


def combine_heads(
    weights: Float[Tensor, "heads queries keys"], how: Literal["mean", "max"]
) -> Float[Tensor, "queries keys"]:
    """Several heads as one map: mean (rows sum to 1) or maximum (rows do not).

    Raises:
        ValueError: if there is no head, or `how` is neither.
    """
    check_tensors(weights=weights)
    if weights.dim() != 3 or not weights.shape[0]:
        raise ValueError(f"weights: expected (heads, queries, keys) with a head, got shape {tuple(weights.shape)}")
    if how not in ("mean", "max"):
        raise ValueError(f"how: expected 'mean' or 'max', got {how!r}")
    return weights.mean(dim=0) if how == "mean" else weights.amax(dim=0)


def query_information(weights: Float[Tensor, "*batch queries keys"]) -> Float[Tensor, "*batch"]:
    """Mutual information of query and key in bits, every query equally likely: 0 where all rows are equal.

    I = H(mean_i w_i) - mean_i H(w_i) (Cover and Thomas 2006, equation 2.45). High for a head that aligns two
    sentences word by word, 0 for one that always attends to the same key, however sharply.

    Raises:
        ValueError: if a row holds a negative weight, or there is no query.
    """
    check_tensors(weights=weights)
    if weights.dim() < 2 or not weights.shape[-2]:
        raise ValueError(f"weights: expected at least one query, got shape {tuple(weights.shape)}")
    return information_of(weights.mean(dim=-2), attention_entropy(weights).mean(dim=-1))


def information_of(
    mean_row: Float[Tensor, "*batch keys"], mean_entropy: Float[Tensor, "*batch"]
) -> Float[Tensor, "*batch"]:
    """H(mean_i w_i) - mean_i H(w_i) in bits from the mean row and the mean entropy of the rows."""
    return (attention_entropy(mean_row[..., None, :])[..., 0] - mean_entropy).clamp_min(0.0)


def attention_sink(weights: Float[Tensor, "queries keys"], least: float = 0.3) -> tuple[int, float] | None:
    """Return the key that draws most attention whatever asks, with its mean weight, or None where no key does.

    max_j mean_i (w_ij - 1/n_i), over the queries i that may see key j; n_i is the number of keys that query i sees. A
    square map without weight above its diagonal is causal: n_i = i, counted from 1, and keys that fewer than half of
    all queries see are left out. Above 0.3 of the weight, Gu (2025, "When Attention Sink Emerges in Language Models",
    section 3) speaks of a sink. Whether the key adds little, its value says: `value_lengths`.

    Args:
        least: weight beyond even attention, 0 to 1, that a sink has at least.

    Raises:
        ValueError: if weights are not a floating-point tensor (queries, keys).
    """
    check_tensors(weights=weights)
    check_axes("queries keys", weights=weights)
    queries, keys = weights.shape
    if not queries or not keys:
        return None
    causal = queries == keys > 1 and not weights.triu(1).any()
    seen = torch.ones_like(weights).tril() if causal else torch.ones_like(weights)
    by = seen.sum(dim=0)
    even = (seen / seen.sum(dim=1, keepdim=True)).sum(dim=0) / by
    mean = weights.sum(dim=0) / by
    beyond = (mean - even).masked_fill(2 * by < queries, -1)
    key = int(beyond.argmax())
    return (key, float(mean[key])) if float(beyond[key]) > least else None


@dataclass(frozen=True)
class Patches:
    """Where tokens lie on a picture: special tokens first, then the patches of a grid row by row."""

    grid: tuple[int, int]
    num_special: int

    @cached_property
    def distances(self) -> Float[Tensor, "patches patches"]:
        """Distances between the centres of all patches, in patches."""
        return patch_distances(self.grid, (1, 1))


def mean_attention_distance(
    weights: Float[Tensor, "*batch n n"], grid: tuple[int, int], patch_size: tuple[int, int], num_special: int = 1
) -> Float[Tensor, "*batch"]:
    """Mean distance in pixels from a patch to the patches it attends to (Dosovitskiy 2021, figure 7, right).

    D = mean_i ( sum_j w_ij |c_i - c_j| / sum_j w_ij ), over patches i and j with centres c. Weights on special tokens
    are excluded, and patches that attend to no patch.

    Args:
        weights: attention weights, special tokens first.
        grid: rows and columns of patches.
        patch_size: height and width of a patch in pixels.
        num_special: tokens before the patches.

    Raises:
        ValueError: if weights are not a floating-point tensor, or there are not as many tokens as special tokens and
            patches.
    """
    check_tensors(weights=weights)
    check_tokens(tuple(weights.shape[-2:]), grid, num_special)
    between = weights[..., num_special:, num_special:]
    distances = patch_distances(grid, patch_size).to(weights)
    rows, attending = distances_of_rows(between, distances)
    return rows.sum(dim=-1) / attending.sum(dim=-1).clamp_min(1)


def distances_of_rows(
    weights: Float[Tensor, "*batch rows patches"], distances: Float[Tensor, "rows patches"]
) -> tuple[Float[Tensor, "*batch rows"], Bool[Tensor, "*batch rows"]]:
    """sum_j w_ij d_ij / sum_j w_ij of each row, and whether the row has any weight; 0 where it has none."""
    mass = weights.sum(dim=-1)
    attending = mass > 0
    return torch.where(attending, (weights * distances).sum(dim=-1) / mass.where(attending, 1.0), 0.0), attending


def uniform_attention_distance(grid: tuple[int, int], patch_size: tuple[int, int]) -> float:
    """Mean distance in pixels for uniform attention: the mean over i and j of |c_i - c_j|."""
    return float(patch_distances(grid, patch_size).mean())


def patch_distances(grid: tuple[int, int], patch_size: tuple[int, int]) -> Float[Tensor, "patches patches"]:
    """Euclidean distances in pixels between the centres of patches, row by row; ValueError if there is no patch."""
    if len(grid) != 2 or len(patch_size) != 2 or not all(is_whole(side) for side in (*grid, *patch_size)):
        raise ValueError(f"grid, patch_size: expected two whole numbers each, got {grid} and {patch_size}")
    if min(*grid, *patch_size) < 1:
        raise ValueError(f"expected a grid and patches of at least 1 x 1, got {grid} and {patch_size}")
    rows = torch.arange(grid[0], dtype=torch.float64) * patch_size[0]
    columns = torch.arange(grid[1], dtype=torch.float64) * patch_size[1]
    centres = torch.cartesian_prod(rows, columns)
    return torch.cdist(centres, centres, compute_mode="donot_use_mm_for_euclid_dist").float()


def check_tokens(sides: tuple[int, ...], grid: tuple[int, int], num_special: int) -> None:
    """Raise ValueError unless both sides of a map are the special tokens and the patches of the grid."""
    expected = num_special + grid[0] * grid[1]
    if sides != (expected, expected):
        raise ValueError(
            f"weights: expected {num_special} special tokens and {grid[0]} x {grid[1]} patches, a side of {expected}, "
            f"got maps of {' x '.join(map(str, sides))}"
        )
