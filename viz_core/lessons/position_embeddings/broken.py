"""Position schemes with deliberate errors, which the claims of the chapter detect."""

import torch
from einops import rearrange
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from viz_core.positional.alibi import alibi_bias, alibi_slopes
from viz_core.positional.scheme import relative_positions
from viz_core.positional.sinusoidal import sinusoidal_table


def skew_of_left_padding(scores: Float[Tensor, "n offsets"]) -> Float[Tensor, "n n"]:
    """A skew that pads on the left: every row is read one offset too early."""
    n, offsets = scores.shape
    line = F.pad(rearrange(F.pad(scores, (1, 0)), "n width -> (n width)"), (0, n - 1))
    return rearrange(line, "(rows offsets) -> rows offsets", offsets=offsets)[:n, n - 1 :]


def added_residuals(
    q: Float[Tensor, " d"], k: Float[Tensor, " d"], offsets: Tensor, base: float, shift: int = 1000
) -> tuple[float, float]:
    """Max change of (q + p_m) . (k + p_n) when both positions grow by `shift`, and of |q| as p_m is added for each m.

    q . p_n and k . p_m depend on where the two stand.
    """
    reach = int(offsets.abs().max())
    table = sinusoidal_table(shift + 2 * reach + 1, len(q), base, dtype=torch.float64)

    def products(start: int) -> Tensor:
        return (k + table[start + reach + offsets]) @ (q + table[start + reach])

    lengths = (q + table[: 2 * reach + 1]).norm(dim=-1) - q.norm()
    return float((products(shift) - products(0)).abs().max()), float(lengths.abs().max())


def wrong_penalty(how: str, num_heads: int, num_tokens: int) -> Float[Tensor, "heads tokens tokens"]:
    """ALiBi's bias with an error: "from-one", slopes that begin at 1; "logarithm", -slope * log(1 + distance)."""
    slopes = alibi_slopes(num_heads)
    if how == "from-one":
        return alibi_bias(num_heads, num_tokens, num_tokens) / slopes[0]
    return -slopes[:, None, None] * relative_positions(num_tokens, num_tokens).abs().double().log1p()
