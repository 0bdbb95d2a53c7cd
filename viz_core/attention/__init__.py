"""Scoring functions, masked softmax and multi-head attention."""

from viz_core.attention.dot_product import DotProductAttention
from viz_core.attention.masking import length_mask, masked_softmax
from viz_core.attention.multi_head import MultiHeadAttention

__all__ = ["DotProductAttention", "MultiHeadAttention", "length_mask", "masked_softmax"]
