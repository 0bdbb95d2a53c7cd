"""Points with labels in the plane: pooling of labels."""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor

from viz_core.attention.kernel_pooling import gaussian, kernel_weights, nadaraya_watson

Points = Float[Tensor, "n 2"]
CENTRES = ((-1.2, -0.6), (1.3, -0.4), (0.0, 1.2))
SPREAD = (0.75, 0.35)  # of a cloud, across and up: they are wider than high


def labelled_points(per_label: int = 14, seed: int = 0) -> tuple[Points, Int[Tensor, " n"]]:
    """Clouds of normal points around three centres, in float64, and the number of each point's cloud."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(len(CENTRES)).repeat_interleave(per_label)
    noise = torch.randn(len(labels), 2, generator=generator, dtype=torch.float64)
    return torch.tensor(CENTRES, dtype=torch.float64)[labels] + noise * torch.tensor(SPREAD), labels


def shares(
    points: Points, labels: Int[Tensor, " n"], queries: Float[Tensor, "queries 2"], widths: tuple[float, float]
) -> Float[Tensor, "queries labels"]:
    """sum_i a(q, x_i) onehot(y_i): the share of each label in a query's weight, with a width for each coordinate.

    a is the Gaussian of sum_c ((q_c - x_c) / h_c)^2. Nothing is trained (Dive into Deep Learning, section 11.2).
    """
    stretch = torch.tensor(widths, dtype=points.dtype)
    one_hot = torch.eye(int(labels.max()) + 1, dtype=points.dtype)[labels]
    return nadaraya_watson(points / stretch, one_hot, queries / stretch, gaussian())[0]


def share_map(
    points: Points, labels: Int[Tensor, " n"], widths: tuple[float, float], reach: float, side: int
) -> tuple[Float[Tensor, " side"], Float[Tensor, "side side labels"]]:
    """`side` places from -reach to reach, and the shares of each label on that grid, row by row from below."""
    axis = torch.linspace(-reach, reach, side, dtype=torch.float64)
    queries = torch.cartesian_prod(axis, axis).flip(1)
    return axis, shares(points, labels, queries, widths).reshape(side, side, -1)


def left_out_right(points: Points, labels: Int[Tensor, " n"], widths: tuple[float, float]) -> float:
    """The share of points whose label is the largest share when the point itself is left out."""
    stretched = points / torch.tensor(widths, dtype=points.dtype)
    weights = kernel_weights(torch.cdist(stretched, stretched).fill_diagonal_(math.inf), gaussian())
    one_hot = torch.eye(int(labels.max()) + 1, dtype=points.dtype)[labels]
    return float(((weights @ one_hot).argmax(dim=1) == labels).double().mean())


def transformed_error(points: Points, widths: tuple[float, float], degrees: float, shift: tuple[float, float]) -> float:
    """max |weights - weights after rotating and shifting keys and queries together|, each point being query and key.

    0 for any shift; for a turn, 0 where both widths are the same: then the kernel sees the distance alone.
    """
    turn = math.radians(degrees)
    rotation = torch.tensor([[math.cos(turn), math.sin(turn)], [-math.sin(turn), math.cos(turn)]], dtype=points.dtype)
    transformed = points @ rotation + torch.tensor(shift, dtype=points.dtype)
    stretch = torch.tensor(widths, dtype=points.dtype)
    before, after = (kernel_weights(torch.cdist(p, p), gaussian()) for p in (points / stretch, transformed / stretch))
    return float((before - after).abs().max())
