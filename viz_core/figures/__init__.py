"""Tensors in, pictures out: the kit plotly figures share, and the bytes that canvas components draw."""
