"""Position schemes, one file each, and the register that finds them."""

from viz_core.positional.alibi import ALiBi, alibi_bias, alibi_slopes
from viz_core.positional.entry import Positions, PositionScheme, SchemeEntry, relative_positions
from viz_core.positional.learned import AbsolutePositionEmbedding1d, LearnedPositionalEmbedding
from viz_core.positional.relative import (
    RelativePositionEmbedding1d,
    RelativePositionEmbedding2d,
    SkewSteps,
    clipped_offsets,
    relative_to_absolute,
    relative_to_absolute_steps,
)
from viz_core.positional.rotary import Rotary, apply_rotary
from viz_core.positional.sinusoidal import (
    PositionalEncoding,
    angular_frequencies,
    relative_projection,
    sinusoidal_rows,
    sinusoidal_table,
)
from viz_core.positional.t5 import T5RelativeBias, t5_relative_position_bucket
from viz_core.runtime.registry import find_entries

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

SCHEMES = find_entries("viz_core.positional", SchemeEntry)
"""Every position scheme of this package, in the order of every list."""

BY_NAME = {scheme.name: scheme for scheme in SCHEMES}
"""Every position scheme by its name, the one without positions as "none"."""

BY_TASK_NAME = {scheme.task_name: scheme for scheme in SCHEMES if scheme.task_name is not None}
"""The schemes that the learning tasks offer, by what these call them."""
