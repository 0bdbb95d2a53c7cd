"""Scaled dot-product attention as a layer."""

from jaxtyping import Float, Int
from torch import Tensor, nn

from viz_core.attention.masking import length_mask
from viz_core.trace import attend, site_of
from viz_core.trace.arguments import check_axes, check_device, check_number, check_tensors


class DotProductAttention(nn.Module):
    """softmax(Q K^T / sqrt(d)) V over the valid keys (Vaswani 2017, equation 1).

    Args:
        dropout: probability of dropping a weight while training, 0 to 1.

    Raises:
        ValueError: if dropout is out of range.
    """

    def __init__(self, dropout: float = 0.0) -> None:
        super().__init__()
        check_number(0, 1, dropout=dropout)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self,
        queries: Float[Tensor, "batch queries d"],
        keys: Float[Tensor, "batch keys d"],
        values: Float[Tensor, "batch keys v"],
        valid_lens: Int[Tensor, " batch"] | Int[Tensor, "batch queries"] | None = None,
    ) -> Float[Tensor, "batch queries v"]:
        """softmax(Q K^T / sqrt(d)) V over the valid keys (Vaswani 2017, equation 1); zeros for a valid length of 0."""
        check_tensors(queries=queries, keys=keys, values=values)
        check_axes("batch n width", queries=queries, keys=keys, values=values)
        check_device(queries=queries, valid_lens=valid_lens)
        mask = None
        if valid_lens is not None:
            mask = length_mask(valid_lens, queries.shape[0], queries.shape[1], keys.shape[1])[:, None]
        return attend(
            queries[:, None],
            keys[:, None],
            values[:, None],
            mask=mask,
            dropout=self.dropout.p if self.training else 0.0,
            site=site_of(self),
        )[:, 0]
