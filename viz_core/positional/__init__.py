"""Position schemes, one file each, and the register that finds them."""

from viz_core.positional.alibi import ALiBi, alibi_bias, alibi_slopes
from viz_core.positional.learned import AbsolutePositionEmbedding1d, LearnedPositionalEmbedding
from viz_core.positional.relative import (
    RelativePositionEmbedding1d,
    SkewSteps,
    clipped_offsets,
    relative_to_absolute,
    relative_to_absolute_steps,
)
from viz_core.positional.relative_2d import RelativePositionEmbedding2d
from viz_core.positional.rotary import Rotary, apply_rotary
from viz_core.positional.scheme import Positions, PositionScheme, relative_positions
from viz_core.positional.sinusoidal import (
    PositionalEncoding,
    angular_frequencies,
    relative_projection,
    sinusoidal_rows,
    sinusoidal_table,
)
from viz_core.positional.t5 import T5RelativeBias, t5_relative_position_bucket

__all__ = [
    "ALiBi",
    "AbsolutePositionEmbedding1d",
    "LearnedPositionalEmbedding",
    "PositionScheme",
    "PositionalEncoding",
    "Positions",
    "RelativePositionEmbedding1d",
    "RelativePositionEmbedding2d",
    "Rotary",
    "SkewSteps",
    "T5RelativeBias",
    "alibi_bias",
    "alibi_slopes",
    "angular_frequencies",
    "apply_rotary",
    "clipped_offsets",
    "relative_positions",
    "relative_projection",
    "relative_to_absolute",
    "relative_to_absolute_steps",
    "sinusoidal_rows",
    "sinusoidal_table",
    "t5_relative_position_bucket",
]
