"""What a recording stores of an attention call, its weights recomputed block by block, and steps as one map."""

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from viz_core.trace.arguments import snapshot, version, with_four_axes
from viz_core.trace.edits import Edits
from viz_core.trace.weights import Bias, Mask, TokenMask, allowed_keys, attention_weights, causal_mask, packed_texts

# A block of rows is recomputed at a time; 2**19 float32 scores are 2 MB, which stay in the cache of a processor.
_BLOCK_SCORES = 2**19
_CAUSAL_ROWS = 64  # more of them compute more of the keys that a causal mask hides
_HUGE_PAGE = 2**21  # bytes


@runtime_checkable
class Source(Protocol):
    """Anything that gives rows of a call's weights."""

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Batch, heads, queries and keys."""

    def tensors(self) -> list[Tensor]:
        """Return the tensors stored for it."""

    def rows(self, heads: slice, queries: slice) -> Float[Tensor, "batch some_heads rows keys"]:
        """Return the weights of these heads and queries over all keys, in float32 or wider; a copy."""


class OfSource:
    """What a call and a text of its batch take over from the source."""

    source: Source

    @property
    def signed(self) -> bool:
        """Whether weights may be negative and rows need not sum to 1: a difference of softmaxes, linear attention."""
        return getattr(self.source, "signed", False)

    @property
    def rule(self) -> str:
        """The rule by which keys are weighed: "softmax", "gated delta rule"."""
        return getattr(self.source, "rule", "softmax")


class StoredTensors:
    """References to tensors, not copies, with the version of each: how often it was changed in place.

    After a change (an optimizer's step on a bias, a cache used again) the weights raise an error. Torch does not count
    changes of tensors made in its inference mode.
    """

    def tensors(self) -> list[Tensor]:
        """Return the stored tensors, in the order of the fields."""
        return list(self.named_tensors().values())

    def named_tensors(self) -> dict[str, Tensor]:
        """Return the stored tensors by the names of their fields."""
        values = {item.name: getattr(self, item.name) for item in fields(self)}  # type: ignore[arg-type]
        return {name: value for name, value in values.items() if isinstance(value, Tensor)}

    def __post_init__(self) -> None:
        object.__setattr__(self, "_versions", [version(tensor) for tensor in self.tensors()])

    def __getstate__(self) -> dict[str, Any]:
        """Return the state of a copy, which would count no earlier changes: ValueError after one."""
        self.check_unchanged()
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a copy, with the versions of its own tensors."""
        self.__dict__.update(state)
        self.__post_init__()

    def check_unchanged(self) -> None:
        """Raise ValueError if a tensor has been changed in place since it was recorded."""
        recorded: list[int | None] = self.__dict__["_versions"]
        for tensor, before in zip(self.tensors(), recorded, strict=True):
            if before is not None and version(tensor) not in (None, before):
                raise ValueError(
                    f"a tensor of shape {tuple(tensor.shape)} was changed in place after it was recorded, and what was "
                    "recorded is gone: read it before the change, or record a copy"
                )

    def to(self, device: torch.device, copies: dict[Hashable, Tensor]) -> Source:
        """Return the same source on another device; ValueError if a tensor was changed in place after it was recorded.

        Args:
            copies: tensors already on that device, by `view_key` of the original; new copies are added.
        """
        self.check_unchanged()
        tensors = self.named_tensors()
        for tensor in tensors.values():
            if view_key(tensor) not in copies:
                copies[view_key(tensor)] = tensor.to(device)
        copied: Source = replace(self, **{n: copies[view_key(t)] for n, t in tensors.items()})  # type: ignore
        return copied


def view_key(tensor: Tensor) -> Hashable:
    """Return a key that is equal for two live tensors that are the same view of one storage."""
    address = tensor.untyped_storage().data_ptr() or id(tensor)  # empty and "meta" tensors have no address
    return address, tensor.storage_offset(), tensor.shape, tensor.stride(), tensor.dtype, tensor.device


@dataclass(frozen=True, eq=False)
class Projected(StoredTensors):
    """Queries and keys after projection, and everything else that determines their weights."""

    queries: Float[Tensor, "batch heads queries d"]
    keys: Float[Tensor, "batch key_heads keys d"]
    mask: Mask | None
    bias: Bias | None
    causal: bool
    scale: float
    softcap: float | None = None
    values: Float[Tensor, "batch key_heads keys v"] | None = None  # for contributions; weights do not depend on them
    edits: Edits | None = None  # of an intervention
    query_tokens: TokenMask | None = None  # where the caller says which are tokens
    key_tokens: TokenMask | None = None
    gate: Float[Tensor, "batch heads queries v"] | None = None  # what the layer multiplies its heads' outputs by
    is_changed: bool = False  # whether the layer changes its heads' outputs in another way before they are projected
    texts: Int[Tensor, "#batch n"] | None = None  # the number of each token's text, of packed ones
    has_sink: bool = False  # whether the first key is a learned sink
    covers: Int[Tensor, "blocks 2"] | None = None  # of the last keys, which are no tokens: the first token, and the end
    joins: bool = False  # whether keys of another sequence follow the own ones in one softmax (T5Gemma 2)
    chooses: bool = False  # whether the layer's indexer hides keys that a query may otherwise attend to
    signed: ClassVar[bool] = False

    @property
    def tokens(self) -> TokenMask | None:
        """True where a key is a token: as the caller says, or where some query may attend to it; None for all."""
        batch, _, _, num_keys = self.shape
        return allowed_keys(self.mask, self.bias, batch, num_keys) if self.key_tokens is None else self.key_tokens

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Batch, query heads, queries and keys."""
        batch, heads, num_queries, _ = self.queries.shape
        return batch, heads, num_queries, self.keys.shape[2]

    def value_factor(self, head: int) -> Float[Tensor, " batch"]:
        """Return what edits multiply each value of a head by; ValueError if they replace its output."""
        batch = self.queries.shape[0]
        return torch.ones(batch) if self.edits is None else self.edits.value_factor(head, batch)

    def rows(self, heads: slice, queries: slice) -> Float[Tensor, "batch some_heads rows keys"]:
        """`attention_weights` of these heads and queries over all keys."""
        weights = self.leading_weights(heads, queries)
        later = self.shape[3] - weights.shape[3]
        return F.pad(weights, (0, later)) if later else weights

    def leading_weights(self, heads: slice, queries: slice) -> Float[Tensor, "batch some_heads rows some_keys"]:
        """Return `rows` up to the last key that some of these queries may attend to; all later weights are 0."""
        return self._weights(heads, queries, self._edit(range(self.shape[1])[heads], queries))

    def scores(self, heads: slice, queries: slice) -> Float[Tensor, "batch some_heads rows keys"]:
        """Return the scores whose softmax is `rows`: scale Q K^T, capped, with bias and edits; -inf for masked keys.

        ValueError if the weights are signed, and no softmax of scores.
        """
        if self.signed:
            raise ValueError(f"expected weights that are the softmax of scores, got a {getattr(self, 'rule', 'rule')}")
        captured: list[Tensor] = []
        edit = self._edit(range(self.shape[1])[heads], queries)

        def capture(scores: Tensor) -> Tensor:
            captured.append(scores if edit is None else edit(scores))
            return captured[-1]

        self._weights(heads, queries, capture)
        return F.pad(captured[0], (0, self.shape[3] - captured[0].shape[3]), value=-torch.inf)

    def _weights(self, heads: slice, queries: slice, edit: Callable[[Tensor], Tensor] | None) -> Tensor:
        """Return `leading_weights` with an edit of their scores."""
        self.check_unchanged()
        group = self.queries.shape[1] // self.keys.shape[1]
        keys = self.keys[:, heads] if group == 1 else self.keys[:, torch.arange(self.queries.shape[1])[heads] // group]
        visible = self._num_visible(queries)
        part = slice(None), heads, queries, slice(visible)
        mask = None if self.mask is None else cropped(self.mask, *part)
        # Of neighbouring rows alone, the last sees all these keys: the rule of a whole map is that of a part.
        is_whole = self.causal and mask is None and queries.step in (None, 1) and self.shape[3] >= self.shape[2]
        if self.causal and not is_whole:
            past = causal_mask(self.shape[2], self.shape[3], self.queries.device, queries, slice(visible))[None, None]
            mask = past if mask is None else mask & past
        return attention_weights(
            self.queries[:, heads, queries],
            keys[:, :, :visible],
            mask,
            None if self.bias is None else cropped(self.bias, *part),
            scale=self.scale,
            softcap=self.softcap,
            edit=edit,
            causal=is_whole,
        )

    def _edit(self, heads: range, queries: slice) -> Callable[[Tensor], Tensor] | None:
        """Return the edit of the scores of these heads; None without any."""
        edits = self.edits
        if edits is None or not any(edits.of(head) for head in heads):
            return None
        return lambda scores: edits.edit_scores(scores, heads, queries)

    def _num_visible(self, queries: slice) -> int:
        """Return how many keys the last of these queries can attend to: with a causal mask, those up to itself."""
        _, _, num_queries, num_keys = self.shape
        rows = range(num_queries)[queries]
        return min(num_keys, max(1, rows[-1] + 1 + num_keys - num_queries)) if self.causal and rows else num_keys


def stored(
    queries: Tensor, keys: Tensor, values: Tensor | None, mask: Mask | None, bias: Bias | None, **settings: Any
) -> Projected:
    """Return what a recording refers to: tensors without their graph, and copies of what may be a cache."""
    mask, bias = (None if tensor is None else tensor.detach() for tensor in (mask, bias))
    values = None if values is None else snapshot(values, queries)
    return Projected(queries.detach(), snapshot(keys, queries), mask, bias, values=values, **settings)


@dataclass(frozen=True, eq=False)
class Direct(StoredTensors):
    """Weights as a layer computed them."""

    weights: Float[Tensor, "batch heads queries keys"]
    values: Float[Tensor, "batch key_heads keys v"] | None = None  # for contributions
    query_tokens: TokenMask | None = None
    key_tokens: TokenMask | None = None
    signed: bool = False  # whether weights may be negative, and rows need not sum to 1
    gate: Float[Tensor, "batch heads queries v"] | None = None  # as of `Projected`
    is_changed: bool = False
    texts: Int[Tensor, "#batch n"] | None = None
    sampled: Bool[Tensor, "batch heads queries"] | None = None  # where a layer's softmax has some queries alone

    @property
    def rule(self) -> str:
        """By what the rows came about."""
        return "softmax" if self.sampled is None else "softmax of sampled queries"

    @property
    def tokens(self) -> TokenMask | None:
        """True where a key is a token, as the caller says; None for all."""
        return self.key_tokens

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Batch, heads, queries and keys."""
        batch, heads, queries, keys = self.weights.shape
        return batch, heads, queries, keys

    def rows(self, heads: slice, queries: slice) -> Float[Tensor, "batch some_heads rows keys"]:
        """Return a copy of these rows, in float32; ValueError if they were changed in place since."""
        self.check_unchanged()
        return self.weights[:, heads, queries].float().clone()


def with_texts(source: Source, site: str | None) -> Source:
    """Return the source of a call in a pass, with the number of each token's text where rows hold several.

    ValueError if the source cannot hold that.
    """
    packed, (batch, _, num_queries, num_keys) = packed_texts.get(), source.shape
    if packed is None or not (site or "").endswith("self") or len(texts := packed[1]) not in (1, batch):
        return source
    if not num_queries == num_keys == texts.shape[-1]:
        return source
    if not isinstance(source, Direct | Projected):
        raise ValueError(f"site {site!r}: expected one text in each row, got several (positions restart)")
    return replace(source, texts=texts)


def zero_maps(size: tuple[int, ...]) -> Float[Tensor, "*size"]:
    """Return float32 zeros on the CPU, in huge pages where there are any.

    The first touches of the usual pages of 4 kB take as long, all in all, as products and softmax. Numpy requests huge
    pages for large arrays, torch does not.
    """
    num_bytes = 4 * math.prod(size)
    if num_bytes < _HUGE_PAGE:
        return torch.zeros(size, dtype=torch.float32)
    memory = np.zeros(num_bytes + _HUGE_PAGE, dtype=np.uint8)
    start = -memory.ctypes.data % _HUGE_PAGE
    return torch.from_numpy(memory[start : start + num_bytes].view(np.float32)).view(size)


def write_rows(source: Source, heads: slice, queries: slice, out: Float[Tensor, "batch some_heads rows keys"]) -> None:
    """Write the weights of these heads and queries to `out`, which holds zeros."""
    weights = source.leading_weights(heads, queries) if type(source) is Projected else source.rows(heads, queries)
    out[..., : weights.shape[3]] = weights


def map_blocks(source: Source, heads: range, rows: range) -> list[tuple[slice, slice]]:
    """Cut maps into heads and rows whose scores fit the block budget.

    Of queries and keys, all rows of few heads; with a causal mask few rows of many heads, without their later keys.
    """
    most = max(1, len(heads)) if heads.step == 1 else 1
    if type(source) is Projected:
        height = min(_CAUSAL_ROWS, len(rows)) if source.causal else len(rows)
        most = max(1, min(most, _BLOCK_SCORES // max(1, source.shape[0] * source.shape[3] * height)))
    blocks = row_blocks(source, rows, most)
    return [(slice(first, min(first + most, heads.stop)), block) for first in heads[::most] for block in blocks]


def row_blocks(source: Source, rows: range, num_heads: int) -> list[slice]:
    """Cut rows into slices whose scores fit the block budget; no rows give one empty slice."""
    if not len(rows):
        return [slice(0, 0)]
    per_row = max(1, source.shape[0] * num_heads * source.shape[3])
    height = max(1, _BLOCK_SCORES // per_row)
    if type(source) is Projected and source.causal:
        height = min(height, _CAUSAL_ROWS)
    cuts = [rows[i : i + height] for i in range(0, len(rows), height)]
    return [slice(cut[0], cut[-1] + 1, rows.step) for cut in cuts]


def cropped(tensor: Tensor, *parts: slice) -> Tensor:
    """Return a part of a tensor that broadcasts to (batch, heads, queries, keys), by axis; an axis of size 1 stays."""
    tensor = with_four_axes(tensor)
    return tensor[tuple(part if size > 1 else slice(None) for part, size in zip(parts, tensor.shape, strict=True))]


def share_keys(sources: Sequence[Source]) -> bool:
    """Whether all calls have the same keys: steps of cross-attention, beside steps of self-attention."""
    return len({(*source.shape[:2], source.shape[3]) for source in sources}) == 1
