"""Shared parts of plotly figures, and the encoding of what canvas components draw."""
