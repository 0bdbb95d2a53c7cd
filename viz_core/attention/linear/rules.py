"""Rules of linear attention: a feature map, decay for each head or token, and the delta rule."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from viz_core.attention.linear.operator import LinearOperator
from viz_core.trace.arguments import can_be_read, check_axes, check_tensors, check_whole


def retention_decay(num_heads: int) -> Float[Tensor, " heads"]:
    """Return each head's decay 1 - 2^(-5 - h), h = 0, 1, ... (RetNet: Sun 2023, equation 8).

    Raises:
        ValueError: if num_heads < 1.
    """
    check_whole(num_heads=num_heads)
    return 1 - torch.exp2(-5.0 - torch.arange(num_heads))


def retention(
    queries: Float[Tensor, "batch heads n d"],
    keys: Float[Tensor, "batch heads n d"],
    decay: Float[Tensor, " heads"] | None = None,
    valid_lens: Int[Tensor, " batch"] | None = None,
) -> LinearOperator:
    """Retention: S_t = g S_(t-1) + k_t v_t^T, so A_ts = g^(t-s) q_t . k_s (RetNet: Sun 2023, equation 5).

    The paper also rotates queries and keys and normalises each head; both are up to the caller.

    Args:
        decay: g of each head, above 0 and at most 1; `retention_decay` by default.
        valid_lens: one length for each batch row; later tokens write nothing.

    Raises:
        ValueError: if there is no decay in that range for each head.
    """
    check_tensors(keys=keys)
    check_axes("batch heads n d", keys=keys)
    heads = keys.shape[1]
    decay = retention_decay(heads).to(keys.device) if decay is None else decay
    check_tensors(decay=decay)
    if decay.shape != (heads,):
        raise ValueError(f"decay: expected one for each of {heads} heads, got shape {tuple(decay.shape)}")
    if can_be_read(decay) and not ((decay > 0) & (decay <= 1)).all():
        raise ValueError(f"decay: expected numbers above 0 and at most 1, got {decay.tolist()}")
    return LinearOperator(queries, keys, decay.log()[None, :, None].expand(keys.shape[:3])).masked(valid_lens)


def gated_decay(
    queries: Float[Tensor, "batch heads n d"],
    keys: Float[Tensor, "batch heads n d"],
    log_decay: Float[Tensor, "batch heads n"],
    strength: Float[Tensor, "batch heads n"] | None = None,
    valid_lens: Int[Tensor, " batch"] | None = None,
) -> LinearOperator:
    """Gated decay: S_t = a_t S_(t-1) + b_t k_t v_t^T, a_t = exp(log_decay_t) (Mamba-2: Dao 2024).

    In Mamba-2's names: queries C, keys B, values x, log_decay = step * A and strength = step.

    Args:
        log_decay: at most 0, from the token.
        valid_lens: one length for each batch row; later tokens neither write nor decay.
    """
    return LinearOperator(queries, keys, log_decay, strength).masked(valid_lens)


def delta_rule(
    queries: Float[Tensor, "batch heads n d"],
    keys: Float[Tensor, "batch heads n d"],
    strength: Float[Tensor, "batch heads n"],
    valid_lens: Int[Tensor, " batch"] | None = None,
) -> LinearOperator:
    """Delta rule: S_t = S_(t-1) + b_t k_t (v_t - S_(t-1)^T k_t)^T (DeltaNet: Schlag 2021).

    With a key of length 1 and b_t = 1 the state then returns v_t for k_t exactly; b_t = 0 writes nothing.

    Args:
        keys: usually of length 1; the state grows without bound where b_t |k_t|^2 > 2.
        strength: b_t, usually 0 to 1.
        valid_lens: one length for each batch row; later tokens neither erase nor write.
    """
    return LinearOperator(queries, keys, None, strength, erases=True).masked(valid_lens)


def gated_delta_rule(
    queries: Float[Tensor, "batch heads n d"],
    keys: Float[Tensor, "batch heads n d"],
    log_decay: Float[Tensor, "batch heads n"],
    strength: Float[Tensor, "batch heads n"],
    valid_lens: Int[Tensor, " batch"] | None = None,
) -> LinearOperator:
    """Gated delta rule: S_t = a_t (I - b_t k_t k_t^T) S_(t-1) + b_t k_t v_t^T (Gated DeltaNet: Yang 2024, equation 10).

    The rule of Qwen3-Next and Qwen3.5, which divide keys and queries by their lengths and queries by sqrt(d) too.

    Args:
        log_decay: log a_t, at most 0.
        strength: b_t, usually 0 to 1.
        valid_lens: one length for each batch row; later tokens neither decay, erase nor write.
    """
    return LinearOperator(queries, keys, log_decay, strength, erases=True).masked(valid_lens)


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
