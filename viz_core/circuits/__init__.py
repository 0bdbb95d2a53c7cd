"""Circuits: which heads and layers make a prediction, through the residual stream."""

from viz_core.circuits.logits import Part, logit_attribution
from viz_core.circuits.path import Edge, circuit_edges, circuits_alone, path_patch
from viz_core.circuits.score import ScoreAttribution, score_attribution
from viz_core.circuits.sweep import AttributionPatch, attribution_patch, patch_sweep
from viz_core.circuits.weights import Circuit, direction_tokens, ov_circuit, qk_circuit

__all__ = [
    "AttributionPatch",
    "Circuit",
    "Edge",
    "Part",
    "ScoreAttribution",
    "attribution_patch",
    "circuit_edges",
    "circuits_alone",
    "direction_tokens",
    "logit_attribution",
    "ov_circuit",
    "patch_sweep",
    "path_patch",
    "qk_circuit",
    "score_attribution",
]
