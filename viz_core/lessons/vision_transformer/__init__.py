"""Attention of one token in a vision transformer, patches as vectors, and shuffled patches."""
