"""The book's architectures."""

from viz_core.models.encoder_decoder import EncoderDecoder
from viz_core.models.transformer import (
    AddNorm,
    PositionWiseFFN,
    TransformerDecoder,
    TransformerDecoderBlock,
    TransformerEncoder,
    TransformerEncoderBlock,
    share_embeddings,
)

__all__ = [
    "AddNorm",
    "EncoderDecoder",
    "PositionWiseFFN",
    "TransformerDecoder",
    "TransformerDecoderBlock",
    "TransformerEncoder",
    "TransformerEncoderBlock",
    "share_embeddings",
]
