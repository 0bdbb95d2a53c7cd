"""A decoder without its mask, and the shapes the book checks."""

from __future__ import annotations

import pytest
import torch

from viz_core.lessons.transformer.layers import encoder_shapes, saved_tensors, unmasked_logits
from viz_core.models.block_options import BlockOptions
from viz_core.models.transformer import TransformerEncoder
from viz_core.models.transformer_decoder import TransformerDecoder


def test_the_books_shapes() -> None:
    assert encoder_shapes() == {"block": (2, 100, 24), "encoder": (2, 100, 24)}


@pytest.mark.parametrize("norm_first", [False, True])
def test_without_its_mask_a_decoder_reads_ahead(norm_first: bool) -> None:
    torch.manual_seed(0)
    encoder = TransformerEncoder(9, 16, 32, 2, 2, 0.0).eval()
    decoder = TransformerDecoder(9, 16, 32, 2, 2, 0.0, options=BlockOptions(norm_first=norm_first)).eval()
    with torch.inference_mode():
        memory = encoder(torch.tensor([[1, 2, 3]]))
        one = torch.tensor([[4]])  # a single step has no future: masked or not is the same
        causal = decoder(one, decoder.init_state(memory))[0]
        torch.testing.assert_close(unmasked_logits(decoder, one, memory, None), causal)
        first, second = (unmasked_logits(decoder, torch.tensor([[4, word]]), memory, None) for word in (5, 6))
        assert float((first - second)[:, 0].abs().max()) > 1e-3
    assert saved_tensors(encoder) == saved_tensors(decoder) == 0
    decoder.map = torch.zeros(1)
    assert saved_tensors(decoder) == 1
