"""The delta rule: what a key's place in the state holds is erased before the new value is written."""

from jaxtyping import Float, Int
from torch import Tensor

from viz_core.attention.linear.operator import LinearOperator


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
