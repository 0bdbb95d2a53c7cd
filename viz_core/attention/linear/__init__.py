"""Attention without a softmax: linear in its values, with a state of fixed size and an exact, signed, causal map."""

from viz_core.attention.linear.decay import gated_decay, retention, retention_decay
from viz_core.attention.linear.delta import delta_rule, gated_delta_rule
from viz_core.attention.linear.feature_map import elu_features, linear_attention
from viz_core.attention.linear.operator import LinearOperator

__all__ = [
    "LinearOperator",
    "delta_rule",
    "elu_features",
    "gated_decay",
    "gated_delta_rule",
    "linear_attention",
    "retention",
    "retention_decay",
]
