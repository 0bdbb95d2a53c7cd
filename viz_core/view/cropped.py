"""Recorded maps cropped to their first rows and columns."""

from __future__ import annotations

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from viz_core.trace import AttentionCall, Source


@dataclass(frozen=True, eq=False)
class Cropped:
    """The first queries and keys of another `Source`. Weights stay normalised over all keys."""

    whole: Source
    num_queries: int
    num_keys: int

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Batch, heads, and the queries and keys that are left."""
        batch, heads, _, _ = self.whole.shape
        return batch, heads, self.num_queries, self.num_keys

    def tensors(self) -> list[Tensor]:
        """The tensors of the whole source."""
        return self.whole.tensors()

    def rows(self, heads: slice, queries: slice) -> Float[Tensor, "batch some_heads rows keys"]:
        """The weights of these heads and queries over the keys that are left."""
        return self.whole.rows(heads, queries)[..., : self.num_keys]


def cropped(call: AttentionCall, num_queries: int, num_keys: int) -> AttentionCall:
    """Crop a call to its first queries and keys."""
    if not (0 < num_queries <= call.num_queries and 0 < num_keys <= call.num_keys):
        sizes = f"{call.num_queries} queries and {call.num_keys} keys"
        raise ValueError(f"{call.site}: expected some of {sizes}, got {num_queries} and {num_keys}")
    return AttentionCall(call.site, Cropped(call.source, num_queries, num_keys))
