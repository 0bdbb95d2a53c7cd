"""What a head with uniform attention scores for each role: nothing beyond chance."""

from collections.abc import Sequence

import torch

from viz_core.maps.register import COLUMNS, ROLES, RoleTargets, role_masses
from viz_core.trace import attention_weights


def uniform_masses(words: Sequence[str], causal: bool = False) -> dict[str, tuple[float, float]]:
    """Return (M, C) of each role that these words have targets for, if all scores of a head are equal.

    M is measured on the softmax of the scores (`role_masses`). C is counted: the share of targets among visible keys,
    averaged over the queries that have targets.
    """
    targets, equal = RoleTargets.of(words, words, True, causal), torch.zeros(1, 1, len(words), 1)
    masses = role_masses(attention_weights(equal, equal, causal=causal)[0], targets)[0]
    found = {}
    for name, mask in targets.masks.items():
        if mask.any():
            shares = (mask & targets.visible).sum(dim=1).double() / targets.visible.sum(dim=1)
            found[name] = float(masses[COLUMNS.index(ROLES[name])]), float(shares[mask.any(dim=1)].mean())
    return found
