"""The checkpoints that ship with the project: where they are, and what they hold."""

from pathlib import Path

from viz_core.pretrained.card import CheckpointError, ModelCard, read_card
from viz_core.runtime.assets import ASSETS

CHECKPOINTS = ASSETS / "checkpoints"


def available(folder: Path | None = None, task: str | None = None) -> tuple[ModelCard, ...]:
    """Return the cards of the models that ship, by name, without those whose config.json cannot be read.

    Args:
        folder: the folder of the checkpoints; the project's own unless given.
        task: "translation" or "classification", for the models of one task only.
    """
    cards = []
    for path in sorted((folder or CHECKPOINTS).glob("*/config.json")):
        try:
            cards.append(read_card(path.parent))
        except CheckpointError:
            continue
    return tuple(card for card in cards if task in (None, card.task))
