"""A hard lookup of one key and a soft lookup of all, and their gradients."""

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.lessons.queries_keys_values.lookup import similarity
from viz_core.trace import attend

GAPS = torch.linspace(-1, 1, 201, dtype=torch.float64)
"""Differences of two scores, for a curve."""


def two_keys(
    gaps: Float[Tensor, " gaps"], temperature: float
) -> tuple[Float[Tensor, " gaps"], Float[Tensor, " gaps"], Float[Tensor, " gaps"]]:
    """The weight of one of two keys by how far its score s lies above the other's: soft, hard, and the soft slope.

    soft a = 1 / (1 + e^(-s/T)), hard 1 for s > 0 else 0, slope da/ds = a (1 - a) / T. The hard one is flat wherever it
    has a slope, so no gradient passes: it was trained by reinforcement (Mnih 2014, section 3).
    """
    soft = torch.sigmoid(gaps / temperature)
    return soft, (gaps > 0).to(gaps.dtype), soft * torch.sigmoid(-gaps / temperature) / temperature


def smallest_gradient(query: str, keys: Sequence[str], temperature: float) -> float:
    """min_j da_j/ds_j = a_j (1 - a_j) / T over the keys, 1 - a_j added up from the others so that it is not rounded.

    Above 0 by the formula wherever there are two keys; with one key nothing can change, and it is 0.
    """
    logs = (similarity([query], keys)[0] / temperature).log_softmax(dim=0)
    others = logs.expand(len(keys), -1).masked_fill(torch.eye(len(keys), dtype=torch.bool), -torch.inf)
    return float(((logs + others.logsumexp(dim=1)).exp() / temperature).min())


def identity_lookup(num_keys: int, temperature: float) -> Float[Tensor, "keys keys"]:
    """The weights where query i is key i and no two keys share anything: a softmax of the identity matrix over T.

    e^(1/T) / (e^(1/T) + n - 1) on the diagonal: near the identity matrix at a low temperature (Dive into Deep
    Learning, section "Visualization", shows the identity itself, for 10 keys).
    """
    identity = torch.eye(num_keys, dtype=torch.float64)[None, None]
    return attend(identity, identity, identity, scale=1 / temperature, site="keys.identity")[0, 0]
