"""KERPLE: a learned penalty that grows with the logarithm of the distance."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from viz_core.positional.entry import PositionScheme, SchemeCost, SchemeEntry, check_queries, relative_positions
from viz_core.trace.arguments import check_whole
from viz_core.trace.weights import Bias


class KerpleLog(nn.Module, PositionScheme):
    """-r1 log(1 + r2 |m - n|) added to the scores, with r1, r2 > 0 learned for each head (Chi 2022, "KERPLE").

    The logarithmic variant: a conditionally positive definite kernel of the distance. The parameters are log r1 and
    log r2, so that both stay positive; as in the authors' code r1 starts uniform in 0 .. 2 and r2 in 0 .. 1.

    Raises:
        ValueError: if num_heads is not a positive whole number.
    """

    def __init__(self, num_heads: int) -> None:
        super().__init__()
        check_whole(num_heads=num_heads)
        self.num_heads = num_heads
        self.log_r1 = nn.Parameter((2 * torch.rand(num_heads)).clamp_min(0.01).log())
        self.log_r2 = nn.Parameter(torch.rand(num_heads).clamp_min(0.01).log())

    def forward(self, num_queries: int, num_keys: int) -> Float[Tensor, "1 heads queries keys"]:
        """-r1 log(1 + r2 |j - i|) for each head; fewer queries than keys are the last positions, as with a cache."""
        distances = relative_positions(num_queries, num_keys, self.log_r1.device).abs()
        r1, r2 = (log.exp()[:, None, None] for log in (self.log_r1, self.log_r2))
        return (-r1 * torch.log1p(r2 * distances))[None]

    def bias(self, queries: Float[Tensor, "batch heads queries d"], num_keys: int) -> Bias:
        """The penalty for these queries, the last of the keys."""
        check_queries(queries, None, None, self.num_heads)
        return self(queries.shape[2], num_keys)


KERPLE = SchemeEntry(
    "kerple",
    order=10,
    formula=r"\frac{q_i \cdot k_j}{\sqrt{d}} - r_1 \log(1 + r_2\,|i - j|)",
    enters="scores",
    depends_on="distance",
    extrapolates=True,
    # 2 h learned, r1 and r2 of each head; h n^2 penalties.
    cost=lambda sizes: SchemeCost.learned(2 * sizes.num_heads, sizes.score_map),
    make=lambda sizes: KerpleLog(sizes.num_heads),
    std=0.5,  # of log r1 and log r2
    seed=9,
    task_name="kerple",
    code=(KerpleLog,),
)
