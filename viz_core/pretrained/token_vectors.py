"""Tokens to try position schemes on: a typed sentence, or the patches of a picture, as vectors of unit variance."""

from __future__ import annotations

import math
import zlib
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Float
from safetensors import SafetensorError, safe_open
from torch import Tensor

from viz_core import pretrained
from viz_core.pretrained import Translator
from viz_core.pretrained.tokenization import clean

_PATCH = 8  # pixels on a side


@dataclass(frozen=True, eq=False)
class Tokens:
    """Tokens with their vectors, on a grid; a sentence is a grid one row high.

    Args:
        labels: one for each token, in reading order.
        X: (n, d) vectors.
        total: how many there would be, had no limit cut them.
    """

    labels: tuple[str, ...]
    X: Float[Tensor, "n d"]
    height: int
    width: int
    total: int

    def one_word(self) -> Tokens:
        """The first token at every place."""
        return replace(self, labels=self.labels[:1] * len(self.labels), X=self.X[:1].expand_as(self.X))


def sentence_tokens(text: str, max_tokens: int, num_hiddens: int, translator: Translator | None = None) -> Tokens:
    """The tokens of a text, at most the first `max_tokens` of them.

    With a translator: its tokens and its embeddings, times sqrt(d) as in its encoder. Without one:
    the words, each with a random vector that depends on the word alone.

    Raises:
        ValueError: if max_tokens or num_hiddens is below 1.
    """
    if max_tokens < 1 or num_hiddens < 1:
        raise ValueError(f"expected max_tokens and num_hiddens of at least 1, got {max_tokens} and {num_hiddens}")
    cleaned = clean(text)
    if translator is None:
        words = cleaned.split()
        labels = tuple(words[:max_tokens])
        X = torch.stack([_word_vector(word, num_hiddens) for word in labels]) if labels else torch.zeros(0, num_hiddens)
        return Tokens(labels, X, 1, len(labels), len(words))
    ids = translator.tokenizer.encode(cleaned).ids if cleaned else []
    kept = ids[:max_tokens]
    X = _embed(translator, kept)
    return Tokens(translator.readable_tokens(kept), X, 1, len(kept), len(ids))


def picture_tokens(height: int, width: int, num_hiddens: int) -> Tokens:
    """The patches of `picture(height, width)`, row-major, under one random projection (Dosovitskiy 2021, equation 1).

    Raises:
        ValueError: if a side is below 1.
    """
    pixels = torch.from_numpy(picture(height, width))
    patches = rearrange(pixels, "(row p) (col q) -> (row col) (p q)", p=_PATCH, q=_PATCH)
    patches = (patches - pixels.mean()) / pixels.std()
    projection = torch.randn(_PATCH**2, num_hiddens, generator=torch.Generator().manual_seed(0)) / _PATCH
    labels = tuple(f"{row + 1},{column + 1}" for row in range(height) for column in range(width))
    return Tokens(labels, patches @ projection, height, width, height * width)


def picture(height: int, width: int) -> Float[np.ndarray, "rows columns"]:
    """A sun over waves, 0 to 1, of height x width patches of 8 x 8 pixels.

    Raises:
        ValueError: if a side is below 1.
    """
    if height < 1 or width < 1:
        raise ValueError(f"height and width: expected at least 1, got {height} and {width}")
    y, x = np.meshgrid(np.linspace(0, 1, _PATCH * height), np.linspace(0, 1, _PATCH * width), indexing="ij")
    sun = 1 / (1 + np.exp(40 * (np.hypot(x - 0.68, y - 0.32) - 0.2)))
    waves = 0.35 + 0.25 * np.sin(14 * np.pi * y**1.5 + 4 * np.sin(2 * np.pi * x))
    sky = 0.15 + 0.35 * y
    return np.clip(np.where(y > 0.62, waves, sky + 0.75 * sun), 0, 1).astype(np.float32)


def shipped_position_table(folder: Path | None = None) -> Float[Tensor, "positions d"] | None:
    """The learned positions of the first picture model that ships, without its class token; None where none ships.

    A checkpoint that cannot be read counts as none: whoever opens that model is told so there.
    """
    root = folder or pretrained.CHECKPOINTS
    for card in pretrained.available(root):
        try:
            with safe_open(root / card.name / "model.safetensors", framework="pt") as tensors:
                if "pos_embedding" in tensors.keys():  # noqa: SIM118  not a dict
                    return tensors.get_tensor("pos_embedding")[0, 1:].float()
        except (OSError, SafetensorError):
            continue
    return None


def resize_table(table: Float[Tensor, "positions d"], height: int, width: int) -> Float[Tensor, "n d"]:
    """A square grid's table on another grid, bicubic (Dosovitskiy 2021, section 3.2).

    Raises:
        ValueError: if the table is not that of a square grid.
    """
    side = math.isqrt(len(table))
    if side**2 != len(table):
        raise ValueError(f"table: expected the positions of a square grid, got {len(table)} rows")
    if (height, width) == (side, side):
        return table
    grid = rearrange(table, "(row col) d -> 1 d row col", row=side)
    resized = F.interpolate(grid, size=(height, width), mode="bicubic", align_corners=False)
    return rearrange(resized, "1 d row col -> (row col) d")


@torch.inference_mode()
def _embed(translator: Translator, ids: list[int]) -> Float[Tensor, "n d"]:
    tokens = torch.tensor(ids, dtype=torch.long, device=translator.device)
    return translator.model.encoder.embed(tokens[None])[0].float().cpu()


def _word_vector(word: str, num_hiddens: int) -> Float[Tensor, "d"]:
    return torch.randn(num_hiddens, generator=torch.Generator().manual_seed(zlib.crc32(word.encode())))
