"""Attention without a softmax: linear in its values, with a state of fixed size and an exact, signed, causal map."""

from viz_core.attention.linear.operator import LinearOperator
from viz_core.attention.linear.rules import (
    delta_rule,
    elu_features,
    gated_decay,
    gated_delta_rule,
    linear_attention,
    retention,
    retention_decay,
)

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
