"""The steps of a generation as one map: what a model with a cache recorded step by step ("decoder.0.self@2")."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from viz_core.trace.padding import TokenMask
from viz_core.trace.source import Source


@dataclass(frozen=True, eq=False)
class Stitched:
    """The rows of successive calls, one below the other; keys that a step did not have yet get no weight."""

    steps: Sequence[Source]

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Batch, heads, queries of all steps, and keys of the last."""
        batch, heads, _, num_keys = self.steps[-1].shape
        return batch, heads, sum(step.shape[2] for step in self.steps), num_keys

    @property
    def tokens(self) -> TokenMask | None:
        """True where a key is a token, as of the last step; None for all."""
        tokens: TokenMask | None = getattr(self.steps[-1], "tokens", None)
        return tokens

    def tensors(self) -> list[Tensor]:
        """Return the tensors stored for all steps."""
        return [tensor for step in self.steps for tensor in step.tensors()]

    def rows(self, heads: slice, queries: slice) -> Float[Tensor, "batch some_heads rows keys"]:
        """Return the weights of these heads and queries over all keys."""
        wanted, first, found = range(self.shape[2])[queries], 0, list[Tensor]()
        for step in self.steps:
            own = [i - first for i in wanted if first <= i < first + step.shape[2]]
            if own:
                rows = step.rows(heads, slice(own[0], own[-1] + 1, wanted.step))
                found.append(F.pad(rows, (0, self.shape[3] - step.shape[3])))
            first += step.shape[2]
        return torch.cat(found, dim=2) if found else self.steps[-1].rows(heads, slice(0, 0))


def are_decoding_steps(sources: Sequence[Source]) -> bool:
    """Whether each call has the keys of the one before and those of its own queries: steps of self-attention."""
    return len(sources) > 1 and all(
        after.shape[:2] == before.shape[:2] and after.shape[3] == before.shape[3] + after.shape[2]
        for before, after in itertools.pairwise(sources)
    )


def share_keys(sources: Sequence[Source]) -> bool:
    """Whether all calls have the same keys: steps of cross-attention, beside steps of self-attention."""
    return len({(*source.shape[:2], source.shape[3]) for source in sources}) == 1
