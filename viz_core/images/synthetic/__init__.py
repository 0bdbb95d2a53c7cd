"""Drawn sample pictures: garments as in a shop, and small scenes."""

from viz_core.images.synthetic.garments import GARMENTS
from viz_core.images.synthetic.scenes import SCENES

__all__ = ["GARMENTS", "SCENES"]
