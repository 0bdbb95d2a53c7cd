"""The book's examples of the Transformer, computed here: Dive into Deep Learning, section 11.7."""

from functools import cache

import torch
import torch.nn.functional as F

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


@cache
def normalised_examples() -> tuple[torch.Tensor, torch.Tensor]:
    """Layer norm and batch norm of the examples (1, 2) and (2, 3), without gain and bias."""
    X = torch.tensor([[1.0, 2.0], [2.0, 3.0]])
    return F.layer_norm(X, (2,)), F.batch_norm(X, None, None, training=True)
