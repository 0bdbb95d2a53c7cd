"""Linear attention: the softmax replaced by a product of features, whose sum over keys can be kept."""

import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from viz_core.attention.linear.operator import LinearOperator
from viz_core.trace.arguments import check_tensors


def elu_features(x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
    """Return elu(x) + 1, positive features: x + 1 for x > 0, else exp(x) (Katharopoulos 2020, equation 7)."""
    check_tensors(x=x)
    return F.elu(x) + 1


def linear_attention(
    queries: Float[Tensor, "batch heads n d"],
    keys: Float[Tensor, "batch heads n d"],
    valid_lens: Int[Tensor, " batch"] | None = None,
    *,
    normalise: bool = True,
) -> LinearOperator:
    """Causal attention with the similarity phi(q) . phi(k), phi = elu + 1 (Katharopoulos 2020, equations 10 to 12).

    S_t = S_(t-1) + phi(k_t) v_t^T,  z_t = z_(t-1) + phi(k_t),  o_t = S_t^T phi(q_t) / (z_t . phi(q_t))

    Args:
        valid_lens: one length for each batch row; later tokens write nothing.
        normalise: divide by z_t . phi(q_t), so that the rows of the map sum to 1. Later models leave it out.
    """
    operator = LinearOperator(elu_features(queries), elu_features(keys), normalises=normalise)
    return operator.masked(valid_lens)
