"""What a server does before its first visitor comes: load the shipped models, and use each once."""

from __future__ import annotations

import ui.gallery  # noqa: F401  # with it come the libraries that every chapter needs
from ui.models import translation_maps
from ui.words import ENGLISH
from viz_core.pretrained import available
from viz_core.samples import sentences


def warm_up() -> None:
    """The first forward pass of a process takes several times as long as the next.

    Raises:
        CheckpointError: if a model cannot be loaded.
        ValueError: if ATLAS_DEVICE names a device that is not here.
    """
    first = sentences()[0].english
    for card in available(task="translation"):
        translation_maps(card.name, first, 1, ENGLISH)
