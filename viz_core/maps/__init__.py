"""Measures on attention maps: entropy, roles of heads, contributions, rollout, relevance, distance, residuals."""

from viz_core.maps.alignments import alignment, best_aligner
from viz_core.maps.contributions import (
    contribution_norms,
    contribution_shares,
    contribution_sum,
    contribution_vectors,
    value_lengths,
)
from viz_core.maps.fingerprints import LayerMeasures, future_weight, measure_layer, row_sum_error
from viz_core.maps.measures import (
    Patches,
    attention_entropy,
    attention_sink,
    combine_heads,
    diagonal_mass,
    induction_mass,
    key_mass,
    mean_attention_distance,
    offset_mass,
    query_information,
    target_mass,
    total_variation,
    uniform_attention_distance,
)
from viz_core.maps.register import MEASURES, ROLES, RoleTargets, role_masses
from viz_core.maps.rollout import attention_rollout, gradient_relevance, relevance_maps, rollout_by_layer
from viz_core.maps.score_products import score_products
from viz_core.maps.word_maps import merge_words, separators, word_numbers

__all__ = [
    "MEASURES",
    "ROLES",
    "LayerMeasures",
    "Patches",
    "RoleTargets",
    "alignment",
    "attention_entropy",
    "attention_rollout",
    "attention_sink",
    "best_aligner",
    "combine_heads",
    "contribution_norms",
    "contribution_shares",
    "contribution_sum",
    "contribution_vectors",
    "diagonal_mass",
    "future_weight",
    "gradient_relevance",
    "induction_mass",
    "key_mass",
    "mean_attention_distance",
    "measure_layer",
    "merge_words",
    "offset_mass",
    "query_information",
    "relevance_maps",
    "role_masses",
    "rollout_by_layer",
    "row_sum_error",
    "score_products",
    "separators",
    "target_mass",
    "total_variation",
    "uniform_attention_distance",
    "value_lengths",
    "word_numbers",
]
