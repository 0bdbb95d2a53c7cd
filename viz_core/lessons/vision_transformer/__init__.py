"""One token's way through a vision transformer, patches as vectors, and patches in another order."""
