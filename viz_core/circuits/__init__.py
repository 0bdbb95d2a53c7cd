"""Circuits: which heads and layers make a prediction, through the residual stream."""

from viz_core.circuits.logits import Part, logit_attribution
from viz_core.circuits.sweep import patch_sweep

__all__ = ["Part", "logit_attribution", "patch_sweep"]
