"""What a vision transformer looks at: patches, rollout, relevance, distance, positions."""

from viz_core.vision.distance import mean_attention_distance, uniform_attention_distance
from viz_core.vision.looks import TokenLook, heads_by_depth, look_of_token, token_by_depth
from viz_core.vision.patches import (
    patchify,
    position_similarity,
    principal_filters,
    shuffle_patches,
    token_attention,
    unpatchify,
)
from viz_core.vision.permutation import PermutationTest, permutation_test, random_order
from viz_core.vision.relevance import gradient_relevance, relevance_maps
from viz_core.vision.rollout import HeadFusion, attention_rollout, rollout_by_layer

__all__ = [
    "HeadFusion",
    "PermutationTest",
    "TokenLook",
    "attention_rollout",
    "gradient_relevance",
    "heads_by_depth",
    "look_of_token",
    "mean_attention_distance",
    "patchify",
    "permutation_test",
    "position_similarity",
    "principal_filters",
    "random_order",
    "relevance_maps",
    "rollout_by_layer",
    "shuffle_patches",
    "token_attention",
    "token_by_depth",
    "uniform_attention_distance",
    "unpatchify",
]
