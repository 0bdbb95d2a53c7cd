"""Convolution, recurrence and self-attention side by side: what a layer costs, and how far a signal has to travel."""

from viz_core.lessons.architectures.costs import ARCHITECTURES, LayerSizes, layer_cost
from viz_core.lessons.architectures.paths import longest_path, path_length

__all__ = ["ARCHITECTURES", "LayerSizes", "layer_cost", "longest_path", "path_length"]
