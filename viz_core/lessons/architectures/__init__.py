"""Convolution, recurrence and self-attention compared: the cost of a layer and the path length of a signal."""
