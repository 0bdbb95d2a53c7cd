"""What a head with uniform attention scores for each role: nothing beyond chance."""

from collections.abc import Sequence

import torch

from viz_core.maps.roles import COLUMNS, ROLES, RoleTargets, role_masses
from viz_core.trace import attention_weights


def uniform_masses(words: Sequence[str], causal: bool = False) -> dict[str, tuple[float, float]]:
    """Return (M, C) of each role that these words have targets for, if all scores of a head are equal.

    M is measured on the softmax of the scores (`role_masses`). C is counted: the share of targets among visible keys,
    averaged over the queries that have targets.

    Raises:
        ValueError: if there are no words.
    """
    targets, equal = RoleTargets.of(words, words, True, causal), torch.zeros(1, 1, len(words), 1)
    masses = role_masses(attention_weights(equal, equal, causal=causal)[0], targets)[0]
    rows = range(len(words))
    places = {name: [[i + offset] for i in rows] for name, offset in (("previous", -1), ("next", 1), ("diagonal", 0))}
    every = (("first", (0,)), ("separator", targets.separators), ("punctuation", targets.punctuation))
    places |= {name: [list(keys) for _ in rows] for name, keys in every}
    found = {"same-word": targets.same_word, "induction": targets.induction}
    places |= {name: [row.nonzero().flatten().tolist() for row in each] for name, each in found.items()}
    chances = {}
    for name, of_query in places.items():
        seen = [i + 1 if causal else len(words) for i in rows]
        counted = [(keys, count) for keys, count in zip(of_query, seen, strict=True) if any(k in rows for k in keys)]
        if counted:
            chances[name] = sum(sum(k in range(count) for k in keys) / count for keys, count in counted) / len(counted)
    return {name: (float(masses[COLUMNS.index(ROLES[name])]), chance) for name, chance in chances.items()}
