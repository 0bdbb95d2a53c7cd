"""Convolution, recurrence and self-attention compared: the cost of a layer and the path length of a signal."""

from viz_core.lessons.architectures.costs import ARCHITECTURES, LayerSizes, layer_cost, longest_path, path_length

__all__ = ["ARCHITECTURES", "LayerSizes", "layer_cost", "longest_path", "path_length"]
