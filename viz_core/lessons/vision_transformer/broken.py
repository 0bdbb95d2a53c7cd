"""Rollout normalised along the wrong axis, as in a known implementation."""

import torch

from viz_core.maps.rollout import HeadFusion, discard_smallest, fuse_heads
from viz_core.pretrained import Classification
from viz_core.pretrained.picture_model import PictureModel


def columns_divided(_model: PictureModel, run: Classification, fusion: HeadFusion, discard: float) -> float:
    """max |row sum - 1| of a rollout with `a / a.sum(dim=-1)`: without keepdim, row sums divide the columns."""
    reached = torch.eye(run.trace[run.trace.sites[0]].num_keys)
    for call in run.trace:
        mixed = discard_smallest(fuse_heads(call.weights()[0], fusion), discard)
        mixed = mixed + torch.eye(len(mixed))
        reached = mixed / mixed.sum(dim=-1) @ reached
    return float((reached.sum(dim=-1) - 1).abs().max())
