"""One recorded attention call: its maps, tiles and thumbnails, computed exactly on demand."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.trace.arguments import check_whole
from viz_core.trace.autocast import without_autocast
from viz_core.trace.indexing import Index, index_range, is_index
from viz_core.trace.source import Direct, Projected, Source, row_blocks
from viz_core.trace.thumbnail import max_pooled


@dataclass(frozen=True, eq=False)  # compared by identity: == of tensors is no boolean
class AttentionCall:
    """One recorded attention call: its exact weights, whole or in tiles, on demand."""

    site: str
    source: Source

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
        if not isinstance(source, Projected | Direct) or source.values is None:
            raise ValueError(
                f"site {self.site!r}: expected a call recorded by record(values=True); of plain PyTorch's none are kept"
            )
        source.check_unchanged()
        return source.values

    @torch.no_grad()
    def weights(
        self,
        head: Index = None,
        queries: Index = None,
        keys: Index = None,
    ) -> Float[Tensor, "..."]:
        """Return exact attention weights, float32 on the CPU: (batch, heads, queries, keys), or one tile of them.

        Every row sums to 1 over ALL keys, also when only some keys are returned; a row whose keys are all masked is
        zeros.

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
            parts = [
                self.source.rows(slice(heads.start, heads.stop), block)[:, :: heads.step, :, across].float().cpu()
                for block in row_blocks(self.source, rows, heads.stop - heads.start)
            ]
        tile = parts[0] if len(parts) == 1 else torch.cat(parts, dim=2)
        for axis, index in ((3, keys), (2, queries), (1, head)):
            if is_index(index):
                tile = tile.squeeze(axis)
        return tile

    @torch.no_grad()
    def overview(self, size: int = 64) -> Float[Tensor, "batch heads rows columns"]:
        """Return max-pooled thumbnails, at most `size` on a side, computed block by block.

        Thumbnail pixel (i, j) is the largest weight with query in bin i and key in bin j, as in
        `max_pooled`. Up to `size` tokens the thumbnail is the map itself.

        Raises:
            ValueError: if size is no whole number, at least 1, or what was recorded has been changed in place since.
        """
        check_whole(size=size)
        every = slice(0, self.num_heads)
        blocks = row_blocks(self.source, range(self.num_queries), self.num_heads)
        with without_autocast(self.source.tensors()):
            rows = (self.source.rows(every, block) for block in blocks)
            return max_pooled(rows, self.num_queries, self.num_keys, size).float().cpu()
