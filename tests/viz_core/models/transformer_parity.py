"""The weights of our blocks into torch's own layers."""

from __future__ import annotations

import torch
from torch import nn


def copy_attention(ours: nn.Module, theirs: nn.MultiheadAttention) -> None:
    """Queries, keys, values and output; biases that ours has not are zeros."""
    projections = [ours.get_submodule(name) for name in ("W_q", "W_k", "W_v", "W_o")]
    biases = [torch.zeros(theirs.embed_dim) if p.bias is None else p.bias for p in projections]
    theirs.in_proj_weight.copy_(torch.cat([p.weight for p in projections[:3]]))
    theirs.in_proj_bias.copy_(torch.cat(biases[:3]))
    theirs.out_proj.weight.copy_(projections[3].weight)
    theirs.out_proj.bias.copy_(biases[3])


def copy_rest(ours: nn.Module, theirs: nn.Module, norms: int) -> None:
    """The feed-forward net and the norms."""
    theirs.linear1.load_state_dict(ours.ffn.dense1.state_dict())
    theirs.linear2.load_state_dict(ours.ffn.dense2.state_dict())
    for i in range(1, norms + 1):
        theirs.get_submodule(f"norm{i}").load_state_dict(ours.get_submodule(f"addnorm{i}").ln.state_dict())
