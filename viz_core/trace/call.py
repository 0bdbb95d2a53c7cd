"""One recorded attention call, of a batch or of one of its texts: maps, tiles and thumbnails, exact, on demand."""

from collections.abc import Iterable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor

from viz_core.trace.arguments import Index, check_whole, index_range, is_index, without_autocast
from viz_core.trace.one_text import OneText, source_of_text
from viz_core.trace.points import SampledPoints
from viz_core.trace.source import Direct, OfSource, Projected, Source, map_blocks, row_blocks, write_rows, zero_maps
from viz_core.trace.weights import TokenMask, is_masked


def max_pooled(
    blocks: Iterable[Float[Tensor, "*maps some keys"]], num_queries: int, num_keys: int, size: int, signed: bool = False
) -> Float[Tensor, "*maps rows columns"]:
    """Return the largest weight of each bin of queries and keys, at most `size` bins on a side.

    Bin i of s over n tokens is floor(i n / s) .. ceil((i + 1) n / s) - 1, as in torch's adaptive max-pooling, so
    neighbouring bins may share a token.

    Args:
        blocks: all rows of the maps, from the first query to the last; one block is in memory at a time.
        signed: whether the largest is that of the largest size, with its sign.
    """
    if signed:
        both = max_pooled((torch.cat([each, -each]) for each in blocks), num_queries, num_keys, size)
        return larger_of(*both.chunk(2))
    num_rows, num_columns = min(size, num_queries), min(size, num_keys)
    strongest: list[Tensor] = []  # over the queries of each bin so far
    first = 0
    for weights in blocks:
        last = first + weights.shape[-2]
        if not (num_queries and num_keys):
            return weights.new_zeros(*weights.shape[:-2], num_rows, num_columns)
        if last - first == num_queries:  # one block holds the whole maps
            return F.adaptive_max_pool2d(weights, (num_rows, num_columns))
        for i in range(first * num_rows // num_queries, -(-last * num_rows // num_queries)):
            start, stop = i * num_queries // num_rows, -(-(i + 1) * num_queries // num_rows)
            largest = weights[..., max(0, start - first) : stop - first, :].amax(dim=-2)
            if i < len(strongest):
                strongest[i] = torch.maximum(strongest[i], largest)
            else:
                strongest.append(largest)
        first = last
    return F.adaptive_max_pool2d(torch.stack(strongest, dim=-2), (num_rows, num_columns))


def larger_of(high: Float[Tensor, "*shape"], low: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """Return the largest of some numbers, or minus the largest of their negatives, whichever is of larger size."""
    return torch.where(high >= low, high, -low)


@dataclass(frozen=True, eq=False)  # compared by identity: == of tensors is not a boolean
class AttentionCall(OfSource):
    """One recorded attention call: its exact weights, whole or in tiles, on demand."""

    site: str
    source: Source
    self_attention: "AttentionCall | None" = None  # of a cross-attention: the one before, with the same queries

    def __repr__(self) -> str:
        """Return site and size in a line."""
        batch, heads, queries, keys = self.source.shape
        return f"AttentionCall({self.site!r}: {batch} x {heads} heads, {queries} queries, {keys} keys)"

    @property
    def stack(self) -> str:
        """The first part of the site: "encoder" in "encoder.0.self"."""
        return self.site.split(".")[0]

    @property
    def kind(self) -> str:
        """What attends to what: "self" or "cross"; "attention" for a layer used by itself."""
        parts = self.site.split("@")[0].split(".")
        return parts[-1] if len(parts) > 2 else parts[0].rpartition("/")[2]  # "RUN/attention.0" of several runs

    @property
    def layer(self) -> int:
        """Index of the layer in its stack, from 0."""
        parts = self.site.split("@")[0].split(".")
        return next((int(part) for part in parts if part.isdecimal()), 0)

    @property
    def num_heads(self) -> int:
        """Heads of queries; key heads may be fewer."""
        return self.source.shape[1]

    @property
    def num_queries(self) -> int:
        """Queries of each head: the rows of its map."""
        return self.source.shape[2]

    @property
    def num_keys(self) -> int:
        """Keys of each head: the columns of its map."""
        return self.source.shape[3]

    @property
    def key_mask(self) -> TokenMask:
        """True where a key is a token, (batch, keys): from the first to the last that its text may attend to."""
        batch, _, _, num_keys = self.source.shape
        tokens = getattr(self.source, "tokens", None)
        return torch.ones(batch, num_keys, dtype=torch.bool) if tokens is None else tokens.cpu()

    @property
    def query_mask(self) -> TokenMask:
        """True where a query is a token, (batch, queries).

        As given by `record(token_mask=...)`; else queries of self-attention are the last of the keys, and those of
        cross-attention are those of the self-attention before it. Of a layer by itself, all are tokens.
        """
        batch, _, num_queries, num_keys = self.source.shape
        given = getattr(self.source, "query_tokens", None)
        if given is not None:
            return given.cpu()  # type: ignore[no-any-return]
        if self.self_attention is not None:
            return self.self_attention.query_mask
        on_itself = self.kind == "self" or getattr(self.source, "causal", False)
        if on_itself and num_queries <= num_keys:
            first = 0 if getattr(self.source, "joins", False) else num_keys - num_queries
            return self.key_mask[:, first : first + num_queries]
        return torch.ones(batch, num_queries, dtype=torch.bool)

    def text(self, row: int, on_itself: bool = False, part: int | None = None) -> "AttentionCall":
        """Return the call of one text of the batch, without its padding: a batch of 1.

        Args:
            on_itself: whether queries and keys are the same tokens where the site does not say so.
            part: which text of a row that holds several, whose positions restart.

        Raises:
            IndexError: if there is no such row or part.
            ValueError: without part, if the row holds several texts; if these attend to one another.
        """
        queries, keys = self.spans(row, on_itself, part)
        if self.source.shape[0] == 1 and (len(queries), len(keys)) == (self.num_queries, self.num_keys):
            return self
        return AttentionCall(self.site, source_of_text(self.source, row % self.source.shape[0], queries, keys))

    def spans(self, row: int, on_itself: bool = False, part: int | None = None) -> tuple[range, range]:
        """Return the places of a text's queries and keys; arguments, IndexError and ValueError are those of `text`."""
        row = index_range(row, self.source.shape[0], "row")[0]
        keys = self.key_mask[row]
        queries = keys if on_itself and self.num_queries == self.num_keys else self.query_mask[row]
        texts: Tensor | None = getattr(self.source, "texts", None)
        if texts is None or not (numbers := texts[row % len(texts)].cpu()).any():
            return token_span(queries), token_span(keys)
        count = int(numbers.max()) + 1
        if part is None:
            raise ValueError(f"site {self.site!r}: expected one text, got {count} in row {row}: give a part, from 0")
        own = numbers == index_range(part, count, "part")[0]
        if bool(self.weights(queries=token_span(own & queries))[row][..., ~own].any()):
            raise ValueError(f"site {self.site!r}: expected texts that do not attend to one another in row {row}")
        return token_span(own & queries), token_span(own & keys)

    @property
    def graph_weights(self) -> Float[Tensor, "batch heads queries keys"]:
        """The weights from which the output was computed, in its graph, for `torch.autograd.grad`.

        Raises:
            ValueError: unless the call was recorded by `record(differentiable=True)` with gradients on.
        """
        if not isinstance(self.source, Direct) or not self.source.weights.requires_grad:
            raise ValueError(f"site {self.site!r}: expected a call recorded by record(differentiable=True)")
        return self.source.weights

    @property
    def values(self) -> Float[Tensor, "batch key_heads keys v"]:
        """The values v_j of the call, split into heads.

        Raises:
            ValueError: unless the call was recorded by `record(values=True)`, or if they have been changed in place.
        """
        source = self.source
        if not isinstance(source, Projected | Direct | SampledPoints | OneText) or source.values is None:
            raise ValueError(
                f"site {self.site!r}: expected a call recorded by record(values=True); layers with attention code of "
                "their own keep none"
            )
        source.check_unchanged()
        return source.values

    @torch.no_grad()
    def weights(self, head: Index = None, queries: Index = None, keys: Index = None) -> Float[Tensor, "..."]:
        """Return exact attention weights, float32 on the CPU: (batch, heads, queries, keys), or one tile of them.

        Every row sums to 1 over ALL keys, also when only some keys are returned, unless the call is `signed`; a row
        whose keys are all masked is zeros.

        Args:
            head, queries, keys: a number (Python's or numpy's, counted from 0, or from the end where it is negative)
                drops its axis; a slice or a range keeps it, also of every second or third; None is all of them.

        Raises:
            IndexError: if there is no such head, query or key, or a slice or range goes backwards.
            ValueError: if what was recorded has been changed in place since.
        """
        heads, rows, columns = (
            index_range(index, size, name)
            for index, size, name in zip(
                (head, queries, keys), self.source.shape[1:], ("head", "queries", "keys"), strict=True
            )
        )
        across = slice(columns.start, columns.stop, columns.step)
        with without_autocast(self.source.tensors()):
            size = (self.source.shape[0], len(heads), len(rows), len(columns))
            tile = zero_maps(size)
            for some, block in map_blocks(self.source, heads, rows):
                i, j = (some.start - heads.start) // heads.step, (block.start - rows.start) // rows.step
                part = tile[:, i : i + some.stop - some.start, j : j + len(range(self.num_queries)[block])]
                if len(columns) == self.num_keys:
                    write_rows(self.source, some, block, part)
                else:
                    part[...] = self.source.rows(some, block)[..., across]
        for axis, index in ((3, keys), (2, queries), (1, head)):
            if is_index(index):
                tile = tile.squeeze(axis)
        return tile

    @property
    @torch.no_grad()
    def chosen(self) -> Bool[Tensor, "batch heads queries keys"]:
        """True where a key takes part in a query's softmax; elsewhere it is hidden, or not chosen by a layer's indexer.

        Raises:
            ValueError: if weights were recorded as whole maps, or are signed: these have no scores.
        """
        scores = getattr(self.source, "scores", None)
        if scores is None:
            raise ValueError(f"site {self.site!r}: expected queries and keys, got whole maps, which do not say")
        blocks = row_blocks(self.source, range(self.num_queries), self.num_heads)
        with without_autocast(self.source.tensors()):
            return torch.cat([~is_masked(scores(slice(0, self.num_heads), rows)).cpu() for rows in blocks], dim=2)

    @torch.no_grad()
    def not_chosen(
        self, queries: slice = slice(None), heads: slice = slice(None)
    ) -> Bool[Tensor, "batch some_heads rows keys"] | None:
        """True where a layer's indexer hides a key from a query that it does not follow; None without an indexer."""
        source = self.source
        if not (isinstance(source, Projected) and source.chooses) or source.signed:
            return None
        covers, count = source.covers, self.num_keys - self.num_queries
        count -= 0 if covers is None else len(covers)
        ends = torch.arange(self.num_queries) + 1
        before = torch.zeros(max(count, 0), dtype=torch.int64)  # a sink, and what was read earlier
        places = torch.cat([before, ends, *([] if covers is None else [covers[:, 1].cpu()])])
        if len(places) != self.num_keys:
            return None
        hidden = is_masked(source.scores(slice(*heads.indices(self.num_heads)[:2]), queries)).cpu()
        return hidden & (places <= ends[queries, None])

    @property
    def sampled(self) -> Bool[Tensor, "batch heads queries"] | None:
        """True where a query takes part in the softmax of a layer that samples some in each head (Informer).

        The rows of the others are even, or in a decoder ones up to their own place. None where all take part.
        """
        found: Tensor | None = getattr(self.source, "sampled", None)
        return None if found is None else found.cpu()

    @torch.no_grad()
    def overview(self, size: int = 64) -> Float[Tensor, "batch heads rows columns"]:
        """Return max-pooled thumbnails, at most `size` on a side, computed block by block.

        Thumbnail pixel (i, j) is the largest weight with query in bin i and key in bin j, as in `max_pooled`; of a
        `signed` call the one of the largest size. Up to `size` tokens the thumbnail is the map itself.

        Raises:
            ValueError: if size is not a positive whole number, or what was recorded has been changed in place since.
        """
        check_whole(size=size)
        every = slice(0, self.num_heads)
        blocks = row_blocks(self.source, range(self.num_queries), self.num_heads)
        with without_autocast(self.source.tensors()):
            rows = (self.source.rows(every, block) for block in blocks)
            return max_pooled(rows, self.num_queries, self.num_keys, size, self.signed).float().cpu()


def token_span(tokens: Bool[Tensor, " n"]) -> range:
    """Return the places from the first to the last token."""
    places = tokens.nonzero().flatten().tolist()
    return range(places[0], places[-1] + 1) if places else range(0)
