"""Maps recomputed from queries and keys on request: whole or in tiles, heads combined, tokens or words."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from viz_core.maps.fingerprints import Fingerprint, measure_layer, measure_maps
from viz_core.maps.head_measure import MapInfo
from viz_core.maps.measures import Patches, combine_heads, weight_shares
from viz_core.maps.word_maps import merge_words
from viz_core.runtime.hooks import may_end
from viz_core.trace import AttentionCall
from viz_core.trace.call import larger_of
from viz_core.trace.points import SampledPoints
from viz_core.view.requests import (
    Found,
    KeysRequest,
    LayerPicture,
    MapRequest,
    MeasuresRequest,
    Part,
    PartError,
    PointsRequest,
    RowsRequest,
    ThumbnailsRequest,
    TileRequest,
    TokenRequest,
    WeightsRequest,
    finite_measures,
    in_bytes,
    in_signed_bytes,
)

TILE = 64
"""Cells on a side of a tile."""

EXACT_TOKENS = 512
"""With more tokens than this on a side, a map is sent in tiles."""

STRIP_WEIGHTS = 2**20
"""So many weights of a map, 4 MB, are sent exactly in one answer."""

# So many weights are computed at a time, over all heads: 2**22 float32 are 16 MB.
_BLOCK_WEIGHTS = 2**22

_Strips = dict[tuple[MapRequest, int, int, int], Tensor]  # rows of tiles: map, levels down and across, and which row


@dataclass(frozen=True)
class ComputedMaps:
    """The `MapSource` of calls that were recorded here."""

    calls: tuple[AttentionCall, ...]  # the layers, first to last
    row: int = 0  # which row of the batch
    # the number of the word each query is a piece of; None where every token is a word
    query_words: tuple[int, ...] | None = None
    key_words: tuple[int, ...] | None = None  # the same for keys
    on_itself: bool = False  # whether queries and keys are places of one sequence
    separators: tuple[int, ...] = ()  # keys that separate or end
    thumbnail_size: int = 64  # pixels on a side of a thumbnail, at most
    patches: Patches | None = None  # where the tokens lie on a picture; None for text
    _pictures: dict[int, LayerPicture] = field(default_factory=dict, init=False, compare=False, repr=False)

    def picture(self, layer: int) -> LayerPicture:
        """A layer's thumbnails and fingerprints, in blocks, never the whole maps at once.

        They are cached: a request for many layers may end in the middle of them, and is repeated.
        """
        if layer >= len(self.calls):
            raise PartError(f"layer: expected one of {len(self.calls)}, got {layer}")
        if layer in self._pictures:
            return self._pictures[layer]
        measured = measure_layer(
            self.calls[layer],
            self.row,
            on_itself=self.on_itself,
            separators=self.separators,
            patches=self.patches,
            size=self.thumbnail_size,
        )
        signed = self.calls[layer].signed
        thumbnails, most = in_signed_bytes(measured.overview) if signed else (in_bytes(measured.overview), 0.0)
        self._pictures[layer] = LayerPicture(thumbnails, measured.fingerprints, measured.row_error, most)
        return self._pictures[layer]

    def parts(self, requests: Sequence[WeightsRequest]) -> list[Found]:
        """Compute each request; tiles of the same rows share the work, and so do all heads of a layer."""
        strips: _Strips = {}
        every, found = self._every_head(requests), list[Found]()
        for request in requests:
            try:
                found.append(self._part(request, strips, every))
            except PartError as error:
                found.append(error)
        return found

    def _every_head(self, requests: Sequence[WeightsRequest]) -> dict[WeightsRequest, Tensor]:
        """The maps of layers all of whose heads are requested, where a layer is small: computed together."""
        found: dict[WeightsRequest, Tensor] = {}
        alone = {one for one in requests if isinstance(one, MapRequest) and len(one.heads) == 1}
        for layer in {one.heads[0][0] for one in alone} & {*range(len(self.calls))}:
            call = self.calls[layer]
            heads = [MapRequest(((layer, head),)) for head in range(call.num_heads)]
            if call.num_heads * call.num_queries * call.num_keys <= _BLOCK_WEIGHTS and alone.issuperset(heads):
                maps = _marked(call, call.weights()[self.row], self.row, slice(None))
                found |= zip(heads, maps, strict=True)
        return found

    def size(self, words: bool = False) -> tuple[int, int]:
        """Rows and columns of a map, in tokens or words."""
        queries, keys = self._numbers(words)
        return queries[-1] + 1, keys[-1] + 1

    def whole(self, wanted: MapRequest) -> Float[Tensor, "rows columns"]:
        """The exact map."""
        rows, columns = self.size(wanted.words)
        return self.cells(wanted, range(rows), range(columns))

    def measures(self, wanted: MapRequest) -> Fingerprint:
        """The measures of a whole map, of heads combined or of words."""
        weights = self.whole(wanted)
        keys = self._numbers(wanted.words)[1]
        info = MapInfo(
            weights.shape[0],
            weights.shape[1],
            self.on_itself,
            tuple(dict.fromkeys(keys[i] for i in self.separators)),
            self.patches,
            rows_sum_to_one=wanted.how == "mean" or len(wanted.heads) == 1,
            signed=self._is_signed(wanted),
        )
        return measure_maps(weights[None], info)[0]

    def cells(
        self, wanted: MapRequest, rows: range, columns: range, pool: tuple[int, int] = (1, 1)
    ) -> Float[Tensor, "rows columns"]:
        """Some rows and columns of a map, exact or max-pooled, without ever holding the whole map.

        Args:
            pool: so many rows and columns become one cell; a last smaller bunch is a cell too.
        """
        for layer, head in wanted.heads:
            if layer >= len(self.calls) or head >= self.calls[layer].num_heads:
                raise PartError(f"heads: expected heads that there are, got layer {layer}, head {head}")
        pieces = []
        # A block of rows is a multiple of what becomes one cell, so that no cell is cut in two.
        height = max(1, _BLOCK_WEIGHTS // (len(wanted.heads) * self.calls[0].num_keys * pool[0])) * pool[0]
        for start in range(rows.start, rows.stop, height):
            may_end()
            block = self._exact(wanted, range(start, min(start + height, rows.stop)), columns)
            pieces.append(_pooled(block, pool, self._is_signed(wanted)) if pool != (1, 1) else block)
        return torch.cat(pieces)

    def _part(
        self, request: WeightsRequest, strips: _Strips, every: Mapping[WeightsRequest, Tensor]
    ) -> Part | LayerPicture:
        match request:
            case ThumbnailsRequest(layer):
                return self.picture(layer)
            case TokenRequest():
                return _exact_part(self._token(request))
            case PointsRequest():
                return _exact_part(self._points(request))
            case KeysRequest():
                return _exact_part(self._keys(request))
            case MapRequest():
                self._check_whole(request)
                return _exact_part(every[request] if request in every else self.whole(request))
            case MeasuresRequest():
                self._check_whole(request.map)
                return Part("bytes", np.empty(0, np.uint8), {"measures": finite_measures(self.measures(request.map))})
            case TileRequest():
                cells = self._tile(request, strips)
                pooled = (request.down, request.across) != (0, 0)
                if pooled and self._is_signed(request.map):
                    coded, most = in_signed_bytes(cells)
                    return Part("root", coded.numpy(), {"most": most})
                return Part("root", in_bytes(cells).numpy()) if pooled else _exact_part(cells)
            case RowsRequest():
                return _exact_part(self._rows(request))

    def _is_signed(self, wanted: MapRequest) -> bool:
        return any(self.calls[layer].signed for layer, _ in wanted.heads)

    def _check_whole(self, wanted: MapRequest) -> None:
        if not is_sent_whole(self.calls[0].num_queries, self.calls[0].num_keys):
            raise PartError(f"map: expected one with at most {EXACT_TOKENS} tokens on a side, got {wanted}")

    def _token(self, request: TokenRequest) -> Float[Tensor, "heads tokens"]:
        queries, keys = self.size()
        axis, index = request.token.axis, request.token.index
        if request.layer >= len(self.calls) or index >= (queries if axis == "query" else keys):
            raise PartError(f"token: expected a layer and token that there are, got {request}")
        one, call = slice(index, index + 1), self.calls[request.layer]
        if axis == "query":
            return _marked(call, call.weights(queries=one)[self.row], self.row, one).flatten(start_dim=1)
        return call.weights(keys=one)[self.row].flatten(start_dim=1)

    def _points(self, request: PointsRequest) -> Float[Tensor, "heads points 4"]:
        source = self.calls[request.layer].source if request.layer < len(self.calls) else None
        axis, index = request.token.axis, request.token.index
        if not isinstance(source, SampledPoints) or axis != "query" or index >= source.shape[2]:
            raise PartError(f"points: expected a layer and query of deformable attention, got {request}")
        return source.read_by(self.row, index)

    def _keys(self, request: KeysRequest) -> Float[Tensor, "heads 2 keys"]:
        """Mean weight on each key, and the query that gives it most; of signed maps in shares of each row."""
        if request.layer >= len(self.calls):
            raise PartError(f"keys: expected a layer that there is, got {request}")
        call = self.calls[request.layer]
        total, most, where = torch.zeros(3, call.num_heads, call.num_keys)
        height = max(1, _BLOCK_WEIGHTS // max(1, call.num_heads * call.num_keys))
        for start in range(0, call.num_queries, height):
            may_end()
            weights = call.weights(queries=slice(start, start + height))[self.row]
            weights = weight_shares(weights) if call.signed else weights
            total += weights.sum(dim=1)
            largest, row = weights.max(dim=1)
            where = torch.where(largest > most, (row + start).float(), where)
            most = torch.maximum(most, largest)
        return torch.stack([total / max(1, call.num_queries), where], dim=1)

    def _tile(self, request: TileRequest, strips: _Strips) -> Float[Tensor, "rows columns"]:
        wanted, down, across = request.map, request.down, request.across
        size = self.size(wanted.words)
        for level, at, tokens in ((down, request.row, size[0]), (across, request.column, size[1])):
            if level > math.ceil(math.log2(max(2, tokens))) or at * TILE << level >= tokens:
                raise PartError(f"tile: expected one of a map of {size[0]} x {size[1]}, got {request}")
        key = (wanted, down, across, request.row)
        if key not in strips:  # a row's weights need all keys anyway, so its tiles cost no more than one of them
            start = request.row * TILE << down
            rows = range(start, min(start + (TILE << down), size[0]))
            strips[key] = self.cells(wanted, rows, range(size[1]), (1 << down, 1 << across))
        return strips[key][:, request.column * TILE : (request.column + 1) * TILE]

    def _rows(self, request: RowsRequest) -> Float[Tensor, "rows columns"]:
        size = self.size(request.map.words)
        rows = range(request.row, request.row + request.height)
        columns = range(request.column, request.column + request.width)
        if not rows or not columns or rows.stop > size[0] or columns.stop > size[1]:
            raise PartError(f"rows: expected some of a map of {size[0]} x {size[1]}, got {request}")
        if len(rows) * len(columns) > STRIP_WEIGHTS:
            raise PartError(f"rows: expected at most {STRIP_WEIGHTS:,} weights, got {len(rows) * len(columns):,}")
        return self.cells(request.map, rows, columns)

    def _exact(self, wanted: MapRequest, rows: range, columns: range) -> Float[Tensor, "rows columns"]:
        """The combined map in these rows and columns, of tokens or of whole words."""
        if not wanted.words:
            return self._combined(wanted, slice(rows.start, rows.stop), slice(columns.start, columns.stop))
        query_words, key_words = self._numbers(words=True)
        queries = [i for i, word in enumerate(query_words) if word in rows]
        keys = [i for i, word in enumerate(key_words) if word in columns]
        tokens = self._combined(wanted, slice(queries[0], queries[-1] + 1), slice(keys[0], keys[-1] + 1))
        return merge_words(
            tokens, [query_words[i] - rows.start for i in queries], [key_words[i] - columns.start for i in keys]
        )

    def _combined(self, wanted: MapRequest, queries: slice, keys: slice) -> Float[Tensor, "queries keys"]:
        maps = [
            self.calls[layer].weights(head=head, queries=queries, keys=keys)[self.row] for layer, head in wanted.heads
        ]
        if len(maps) > 1:
            return combine_heads(torch.stack(maps), wanted.how)
        (layer, head), *_ = wanted.heads
        return _marked(self.calls[layer], maps[0][None], self.row, queries, slice(head, head + 1), keys)[0]

    def _numbers(self, words: bool) -> tuple[Sequence[int], Sequence[int]]:
        """The number of the token or word of each query and each key."""
        query_words, key_words = (self.query_words, self.key_words) if words else (None, None)
        return query_words or range(self.calls[0].num_queries), key_words or range(self.calls[0].num_keys)


def _marked(
    call: AttentionCall,
    weights: Float[Tensor, "heads rows columns"],
    row: int,
    queries: slice,
    heads: slice = slice(None),
    keys: slice = slice(None),
) -> Float[Tensor, "heads rows columns"]:
    """Return weights with -0 where a layer's indexer has not chosen a key: told from 0 by its sign alone."""
    skipped = call.not_chosen(queries, heads)
    return weights if skipped is None else torch.where(skipped[row][..., keys] & (weights == 0), -0.0, weights)


def is_sent_whole(queries: int, keys: int) -> bool:
    """Whether maps of so many tokens are sent whole, not in tiles."""
    return max(queries, keys) <= EXACT_TOKENS


def _pooled(block: Tensor, pool: tuple[int, int], signed: bool) -> Float[Tensor, "rows columns"]:
    """The largest weight of each cell; of signed maps the one of the largest size."""
    if not signed:
        return F.max_pool2d(block[None], pool, ceil_mode=True)[0]
    return larger_of(*F.max_pool2d(torch.stack([block, -block]), pool, ceil_mode=True))


def _exact_part(weights: Tensor) -> Part:
    return Part("exact", weights.numpy().astype("<f4", copy=False))
