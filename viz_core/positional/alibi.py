"""ALiBi: a penalty on the scores that grows with distance, without position vectors."""

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.positional.entry import PositionScheme, SchemeCost, SchemeEntry, check_queries, relative_positions
from viz_core.trace.arguments import check_whole
from viz_core.trace.weights import Bias


def alibi_slopes(num_heads: int) -> Float[Tensor, " heads"]:
    """Slopes of h heads: 2^(-8/h), 2^(-16/h), ..., 2^(-8), float64 (Press 2022, section 3).

    8 heads: 1/2, 1/4, ..., 1/256. A number of heads that is not a power of two takes, as in the authors'
    code, the slopes of the power below it, then every other slope of the power above it.

    Raises:
        ValueError: if num_heads is not a positive whole number.
    """
    check_whole(num_heads=num_heads)
    num_heads = int(num_heads)
    power = 2 ** (num_heads.bit_length() - 1)  # the largest one up to num_heads
    between = _geometric(2 * power)[0::2]
    return torch.cat([_geometric(power), between[: num_heads - power]])


def alibi_bias(num_heads: int, num_queries: int, num_keys: int) -> Float[Tensor, "heads queries keys"]:
    """-slope * |distance| from query to key, to be added to the scaled scores (Press 2022, section 3).

    Fewer queries than keys are the last positions, as when a decoder with a cache computes its newest
    steps. The paper's attention is causal; here a key after the query costs as much as one before it,
    for bidirectional attention. Under a causal mask the two are the same.

    Returns:
        float32 on the CPU, 0 where query and key have the same position, negative elsewhere.

    Raises:
        ValueError: if num_heads or num_queries is not a positive whole number, or num_keys is below num_queries.
    """
    distances = relative_positions(num_queries, num_keys).abs()
    return (alibi_slopes(num_heads)[:, None, None] * -distances).float()


class ALiBi(PositionScheme):
    """The penalty of `alibi_bias` inside attention, for as many heads as the queries have; it has no parameters."""

    def bias(self, queries: Float[Tensor, "batch heads queries d"], num_keys: int) -> Bias:
        """-slope * |distance| (Press 2022, section 3)."""
        check_queries(queries, None, None)
        return alibi_bias(queries.shape[1], queries.shape[2], num_keys)[None].to(queries.device)


def _geometric(num_heads: int) -> Float[Tensor, " heads"]:
    return 2.0 ** (-8.0 * torch.arange(1, num_heads + 1, dtype=torch.float64) / num_heads)


ALIBI = SchemeEntry(
    "alibi",
    order=8,
    formula=r"\frac{q_i \cdot k_j}{\sqrt{d}} - m_h\,|i - j|",
    enters="scores",
    depends_on="distance",
    extrapolates=True,
    # h slopes stored; h n^2 penalties (Press 2022, section 3).
    cost=lambda sizes: SchemeCost(stored=sizes.num_heads, computed=sizes.score_map),
    make=lambda _: ALiBi(),
    task_name="alibi",
    code=(alibi_slopes, alibi_bias),
)
