"""Torch's fused kernels for a whole attention layer and a whole encoder layer."""

from viz_core.torch_internals.register import private

native_multi_head_attention = private(
    "torch:_native_multi_head_attention", "recording the fast path of nn.MultiheadAttention"
)
transformer_encoder_layer = private(
    "torch:_transformer_encoder_layer_fwd", "recording the fast path of nn.TransformerEncoderLayer"
)
