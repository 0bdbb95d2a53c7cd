"""Small Transformers with random weights, for the tests of them."""

import torch
from torch import Tensor, nn

from viz_core.models import (
    EncoderDecoder,
    TransformerDecoder,
    TransformerEncoder,
)

VOCAB, WIDTH, FFN, HEADS, BLOCKS = 19, 12, 20, 3, 2


SIZES = (VOCAB, WIDTH, FFN, HEADS, BLOCKS)


def shaken(module: nn.Module) -> nn.Module:
    """Every parameter random, also the gains and biases that start as ones and zeros."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.normal_(std=0.4)
    return module


def random_model(dropout: float = 0.0, use_bias: bool = False) -> EncoderDecoder:
    model = EncoderDecoder(TransformerEncoder(*SIZES, dropout, use_bias), TransformerDecoder(*SIZES, dropout, use_bias))
    shaken(model)
    return model.eval()


def random_ids(batch: int = 2, n: int = 6) -> Tensor:
    return torch.randint(0, VOCAB, (batch, n))
