"""The patches of a drawn picture as tokens, and a trained table of positions for their grid."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from einops import rearrange
from jaxtyping import Float
from safetensors import SafetensorError, safe_open
from torch import Tensor

from viz_core.pretrained import ModelCard, shipped
from viz_core.pretrained.token_vectors import Tokens

_PATCH = 8  # pixels on a side


def picture_tokens(height: int, width: int, num_hiddens: int) -> Tokens:
    """The patches of picture(height, width), row-major, under one random projection (Dosovitskiy 2021, eq. 1)."""
    pixels = torch.from_numpy(picture(height, width))
    patches = rearrange(pixels, "(row p) (col q) -> (row col) (p q)", p=_PATCH, q=_PATCH)
    patches = (patches - pixels.mean()) / pixels.std()
    projection = torch.randn(_PATCH**2, num_hiddens, generator=torch.Generator().manual_seed(0)) / _PATCH
    labels = tuple(f"{row + 1},{column + 1}" for row in range(height) for column in range(width))
    return Tokens(labels, patches @ projection, height, width, height * width)


def picture(height: int, width: int) -> Float[np.ndarray, "rows columns"]:
    """A sun over waves, 0 to 1, of height x width patches of 8 x 8 pixels."""
    y, x = np.meshgrid(np.linspace(0, 1, _PATCH * height), np.linspace(0, 1, _PATCH * width), indexing="ij")
    sun = 1 / (1 + np.exp(40 * (np.hypot(x - 0.68, y - 0.32) - 0.2)))
    waves = 0.35 + 0.25 * np.sin(14 * np.pi * y**1.5 + 4 * np.sin(2 * np.pi * x))
    sky = 0.15 + 0.35 * y
    return np.clip(np.where(y > 0.62, waves, sky + 0.75 * sun), 0, 1).astype(np.float32)


class LearnedTable(NamedTuple):
    """The positions that a picture model has learned, without its class token, and its card."""

    card: ModelCard
    positions: Float[Tensor, "positions d"]


def shipped_position_tables(folder: Path | None = None) -> list[LearnedTable]:
    """The tables of all picture models that ship.

    A checkpoint that cannot be read is left out; its own page reports the error.
    """
    root, found = folder or shipped.CHECKPOINTS, []
    for card in shipped.available(root):
        try:
            with safe_open(root / card.name / "model.safetensors", framework="pt") as tensors:
                if "pos_embedding" in tensors.keys():  # noqa: SIM118  not a dict
                    found.append(LearnedTable(card, tensors.get_tensor("pos_embedding")[0, 1:].float()))
        except (OSError, SafetensorError):
            continue
    return found
