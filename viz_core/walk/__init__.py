"""One forward pass of a shipped model, taken apart: every state from the tokens to the word that is chosen."""

from viz_core.walk.steps import Attention, Block, Choice, Edits, Stack, Walk, walk_edits
from viz_core.walk.walks import walk_picture, walk_translation

__all__ = ["Attention", "Block", "Choice", "Edits", "Stack", "Walk", "walk_edits", "walk_picture", "walk_translation"]
