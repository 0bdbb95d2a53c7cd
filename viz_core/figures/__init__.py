"""Tensors in, pictures out: plotly figures, and the bytes of the attention view."""
