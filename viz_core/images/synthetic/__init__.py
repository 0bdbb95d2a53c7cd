"""Pictures to start from, drawn by this project: garments as a shop shows them, and small scenes."""

from viz_core.images.synthetic.garments import GARMENTS
from viz_core.images.synthetic.scenes import SCENES

__all__ = ["GARMENTS", "SCENES"]
