"""What a recording keeps of an attention call, and the way back from it to weights, block by block.

`viz_core.trace` is the ground floor: it imports nothing else of the library.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Protocol, runtime_checkable

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from viz_core.torch_internals.tensors import version
from viz_core.trace.edits import Edits
from viz_core.trace.weights import Bias, Mask, attention_weights, causal_mask

# A block of rows is recomputed at a time; 2**23 float32 scores are 32 MB.
_BLOCK_SCORES = 2**23


@runtime_checkable
class Source(Protocol):
    """Where the weights of a call come from: whatever can give rows of them."""

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Batch, heads, queries and keys."""
        ...

    def tensors(self) -> list[Tensor]:
        """What is held here for it."""
        ...

    def rows(self, heads: slice, queries: slice) -> Float[Tensor, "batch some_heads rows keys"]:
        """The weights of these heads and queries over all keys, in float32 or wider; a copy."""
        ...


class StoredTensors:
    """What is held here: references, not copies, which therefore count how often each tensor is changed in place.

    Whoever changes one afterwards (an optimizer's step on a bias, a cache used again) is told so when the weights are
    asked for. Of tensors made in torch's inference mode nobody counts the changes.
    """

    def tensors(self) -> list[Tensor]:
        """What is held."""
        raise NotImplementedError

    def __post_init__(self) -> None:
        object.__setattr__(self, "_versions", _versions(self.tensors()))

    def __setstate__(self, state: dict[str, Any]) -> None:
        """A copy counts anew."""
        self.__dict__.update(state)
        object.__setattr__(self, "_versions", _versions(self.tensors()))

    def check_unchanged(self) -> None:
        """Refuse to answer from numbers that are no longer those of the call.

        Raises:
            ValueError: if a tensor has been changed in place since it was recorded.
        """
        then: list[int | None] = self.__dict__["_versions"]
        for tensor, now, before in zip(self.tensors(), _versions(self.tensors()), then, strict=True):
            if now is not None and before is not None and now != before:
                raise ValueError(
                    f"a tensor of shape {tuple(tensor.shape)} was changed in place after it was recorded, and its "
                    "weights are gone: read the maps before the change, or record a copy of it"
                )

    def to(self, device: torch.device, moved: dict[Hashable, Tensor]) -> Source:
        """The same on another device.

        Args:
            moved: what is there already, by `view_key`, to be shared there as it is here; what is new is added.

        Raises:
            ValueError: if a tensor has been changed in place since it was recorded.
        """
        self.check_unchanged()
        named = {item.name: getattr(self, item.name) for item in fields(self)}  # type: ignore[arg-type]
        tensors = {name: tensor for name, tensor in named.items() if isinstance(tensor, Tensor)}
        for tensor in tensors.values():
            if view_key(tensor) not in moved:
                moved[view_key(tensor)] = tensor.to(device)
        there: Source = replace(self, **{n: moved[view_key(t)] for n, t in tensors.items()})  # type: ignore
        return there


def view_key(tensor: Tensor) -> Hashable:
    """What two tensors have in common, while both are there, that are one view of one storage."""
    place = tensor.untyped_storage().data_ptr() or id(tensor)  # nothing has a place: none at all, and "meta"
    return place, tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype, tensor.device


def _versions(tensors: Sequence[Tensor]) -> list[int | None]:
    """How often each tensor has been changed in place, by way of views too; None where torch does not count.

    What goes past torch's count is not noticed: `.data`, and numpy's view of the same memory.
    """
    return [version(tensor) for tensor in tensors]


@dataclass(frozen=True, eq=False)
class Projected(StoredTensors):
    """Queries and keys after projection, and all else that decides their weights."""

    queries: Float[Tensor, "batch heads queries d"]
    keys: Float[Tensor, "batch key_heads keys d"]
    mask: Mask | None
    bias: Bias | None
    causal: bool
    scale: float
    softcap: float | None = None
    values: Float[Tensor, "batch key_heads keys v"] | None = None  # decide no weight; kept for contributions
    edits: Edits | None = None  # what an intervention does to some heads

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Batch, query heads, queries and keys."""
        batch, heads, num_queries, _ = self.queries.shape
        return batch, heads, num_queries, self.keys.shape[2]

    def tensors(self) -> list[Tensor]:
        """Queries and keys, and mask, bias and values where there are any."""
        return [t for t in (self.queries, self.keys, self.mask, self.bias, self.values) if t is not None]

    def rows(self, heads: slice, queries: slice) -> Float[Tensor, "batch some_heads rows keys"]:
        """`attention_weights` of these heads and queries over all keys.

        Raises:
            ValueError: if one of the tensors has been changed in place since it was recorded.
        """
        return self._weighed(heads, queries, self._edit(range(self.shape[1])[heads], queries))

    def scores(self, heads: slice, queries: slice) -> Float[Tensor, "batch some_heads rows keys"]:
        """What `rows` is the softmax of: scale Q K^T, capped, with its bias and edits; -inf for a key that is hidden.

        Raises:
            ValueError: if one of the tensors has been changed in place since it was recorded.
        """
        found: list[Tensor] = []
        edit = self._edit(range(self.shape[1])[heads], queries)

        def hear(scores: Tensor) -> Tensor:
            found.append(scores if edit is None else edit(scores))
            return found[-1]

        self._weighed(heads, queries, hear)
        return F.pad(found[0], (0, self.shape[3] - found[0].shape[3]), value=-torch.inf)

    def _weighed(self, heads: slice, queries: slice, edit: Callable[[Tensor], Tensor] | None) -> Tensor:
        """`attention_weights` of these heads and queries, with what is done to their scores."""
        self.check_unchanged()
        group = self.queries.shape[1] // self.keys.shape[1]
        key_heads = torch.arange(heads.start, heads.stop, device=self.keys.device) // group
        seen = self._seen(queries)
        mask = None if self.mask is None else _crop(self.mask, heads, queries)[..., :seen]
        if self.causal:  # of these rows alone: the mask of a whole map can be larger than all else that is kept
            past = causal_mask(self.shape[2], self.shape[3], self.queries.device, queries, slice(seen))[None, None]
            mask = past if mask is None else mask & past
        weights = attention_weights(
            self.queries[:, heads, queries],
            (self.keys[:, key_heads] if group > 1 else self.keys[:, heads])[:, :, :seen],
            mask,
            None if self.bias is None else _crop(self.bias, heads, queries)[..., :seen],
            scale=self.scale,
            softcap=self.softcap,
            edit=edit,
        )
        return F.pad(weights, (0, self.shape[3] - seen)) if seen < self.shape[3] else weights

    def _edit(self, heads: range, queries: slice) -> Callable[[Tensor], Tensor] | None:
        """What is done to the scores of these heads; None where that is nothing."""
        edits, num_queries = self.edits, self.shape[2]
        if edits is None or not any(edits.of(head) for head in heads):
            return None
        return lambda scores: edits.reweighed(scores, heads, queries, num_queries)

    def _seen(self, queries: slice) -> int:
        """How many keys the last of these queries sees: where it is causal, none of them sees one that comes later."""
        _, _, num_queries, num_keys = self.shape
        rows = range(num_queries)[queries]
        return min(num_keys, max(1, rows[-1] + 1 + num_keys - num_queries)) if self.causal and rows else num_keys


@dataclass(frozen=True, eq=False)
class Direct(StoredTensors):
    """Weights as the layer computed them."""

    weights: Float[Tensor, "batch heads queries keys"]
    values: Float[Tensor, "batch key_heads keys v"] | None = None  # kept for contributions

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Batch, heads, queries and keys."""
        batch, heads, queries, keys = self.weights.shape
        return batch, heads, queries, keys

    def tensors(self) -> list[Tensor]:
        """The weights, and values where there are any."""
        return [t for t in (self.weights, self.values) if t is not None]

    def rows(self, heads: slice, queries: slice) -> Float[Tensor, "batch some_heads rows keys"]:
        """These rows of the weights, as a copy: what a reader does to it must not reach the trace.

        Raises:
            ValueError: if the weights have been changed in place since they were recorded.
        """
        self.check_unchanged()
        return self.weights[:, heads, queries].float().clone()


def row_blocks(source: Source, rows: range, num_heads: int) -> list[slice]:
    """Cut the wanted rows into slices whose scores fit the block budget; no rows are one empty slice."""
    if not len(rows):
        return [slice(0, 0)]
    per_row = max(1, source.shape[0] * num_heads * source.shape[3])
    height = max(1, _BLOCK_SCORES // per_row)
    cuts = [rows[i : i + height] for i in range(0, len(rows), height)]
    return [slice(cut[0], cut[-1] + 1, rows.step) for cut in cuts]


def _crop(tensor: Tensor, heads: slice, queries: slice) -> Tensor:
    """The part of a broadcastable (batch, heads, queries, keys) tensor that these heads and queries meet."""
    tensor = tensor.reshape((1,) * (4 - tensor.dim()) + tensor.shape)
    if tensor.shape[1] > 1:
        tensor = tensor[:, heads]
    return tensor[:, :, queries] if tensor.shape[2] > 1 else tensor
