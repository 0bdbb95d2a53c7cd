"""Measures of a loaded model's own position scheme."""

import math

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from viz_core.positional import t5_relative_position_bucket

MAX_ROWS = 512
"""Rows of a table of positions that are measured and drawn."""


def cosines(table: Float[Tensor, "positions width"]) -> Float[Tensor, "positions positions"]:
    """Cosines of the first rows, p_i . p_j / (|p_i| |p_j|), after the mean row, which all share, is subtracted."""
    rows = F.normalize(table[:MAX_ROWS] - table.mean(dim=0), dim=1)
    return rows @ rows.T


def wavelengths(frequencies: Float[Tensor, " pairs"]) -> Float[Tensor, " pairs"]:
    """Tokens per full rotation of each pair, 2 pi / omega."""
    return 2 * math.pi / frequencies.clamp_min(1e-12)


def bias_by_offset(
    values: Float[Tensor, "buckets heads"], bidirectional: bool, max_distance: int, reach: int
) -> Float[Tensor, "heads offsets"]:
    """T5's bias for keys from `reach` before the query to `reach` after it; up to the query if it reads one way."""
    offsets = torch.arange(-reach, reach + 1 if bidirectional else 1)
    buckets = t5_relative_position_bucket(offsets, bidirectional, len(values), max_distance)
    return values[buckets].T.contiguous()
