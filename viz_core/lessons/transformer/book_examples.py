"""The book's checks of the Transformer's shapes, computed here: Dive into Deep Learning, section 11.7."""

from __future__ import annotations

from functools import cache

import torch

from viz_core.models.transformer import TransformerEncoder, TransformerEncoderBlock

_BATCH, _STEPS, _HIDDENS, _FFN, _HEADS = 2, 100, 24, 48, 8


@cache
@torch.no_grad()
def encoder_shapes() -> dict[str, tuple[int, ...]]:
    """Shapes after one encoder block, and after an encoder of 200 words and two blocks: 24 wide, 48 within, 8 heads."""
    block = TransformerEncoderBlock(_HIDDENS, _FFN, _HEADS, 0.5).eval()
    encoder = TransformerEncoder(200, _HIDDENS, _FFN, _HEADS, 2, 0.5).eval()
    valid_lens = torch.tensor([3, 2])
    return {
        "block": tuple(block(torch.ones(_BATCH, _STEPS, _HIDDENS), valid_lens).shape),
        "encoder": tuple(encoder(torch.ones(_BATCH, _STEPS, dtype=torch.long), valid_lens).shape),
    }
