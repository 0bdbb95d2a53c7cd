"""A vision transformer small enough to work out by loops."""

from tests.viz_core.small_vit import model, picture

__all__ = ["model", "picture"]
