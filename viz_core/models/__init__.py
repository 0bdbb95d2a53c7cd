"""The book's architectures."""

from viz_core.models.encoder_decoder import Decoder, EncoderDecoder, TokenReader, share_embeddings
from viz_core.models.rnnsearch import RNNSearchDecoder
from viz_core.models.seq2seq import Seq2SeqAttentionDecoder, Seq2SeqDecoder, Seq2SeqEncoder
from viz_core.models.transformer import (
    AddNorm,
    BlockOptions,
    GatedFFN,
    PositionWiseFFN,
    TransformerEncoder,
    TransformerEncoderBlock,
)
from viz_core.models.transformer_decoder import TransformerDecoder, TransformerDecoderBlock
from viz_core.models.vit import PatchEmbedding, ViT, ViTBlock, ViTMLP

__all__ = [
    "AddNorm",
    "BlockOptions",
    "Decoder",
    "EncoderDecoder",
    "GatedFFN",
    "PatchEmbedding",
    "PositionWiseFFN",
    "RNNSearchDecoder",
    "Seq2SeqAttentionDecoder",
    "Seq2SeqDecoder",
    "Seq2SeqEncoder",
    "TokenReader",
    "TransformerDecoder",
    "TransformerDecoderBlock",
    "TransformerEncoder",
    "TransformerEncoderBlock",
    "ViT",
    "ViTBlock",
    "ViTMLP",
    "share_embeddings",
]
