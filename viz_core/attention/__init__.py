"""Scoring functions, masked softmax and multi-head attention."""

from viz_core.attention.additive import AdditiveAttention, DotProductAttention
from viz_core.attention.kernel_pooling import boxcar, constant, epanechnikov, gaussian, nadaraya_watson, triangular
from viz_core.attention.masking import length_mask, masked_softmax
from viz_core.attention.multi_head import MultiHeadAttention

__all__ = [
    "AdditiveAttention",
    "DotProductAttention",
    "MultiHeadAttention",
    "boxcar",
    "constant",
    "epanechnikov",
    "gaussian",
    "length_mask",
    "masked_softmax",
    "nadaraya_watson",
    "triangular",
]
