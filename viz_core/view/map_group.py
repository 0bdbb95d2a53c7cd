"""Attention maps of one kind, layer by layer, with their thumbnails and fingerprints."""

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import get_args

import numpy as np
import torch
from jaxtyping import Float, UInt8
from torch import Tensor

from viz_core.maps.alignments import HeadErrors, Reading
from viz_core.maps.fingerprints import clearest_head, with_accuracies
from viz_core.maps.head_measure import MapInfo, Measure
from viz_core.maps.measures import Patches
from viz_core.maps.register import MEASURES
from viz_core.maps.word_maps import separators
from viz_core.runtime.assets import UNKNOWN, Provenance
from viz_core.trace import AttentionCall
from viz_core.view.computed_maps import ComputedMaps, is_sent_whole
from viz_core.view.requests import (
    Found,
    LayerPicture,
    MapRequest,
    MapSource,
    Part,
    PartError,
    ThumbnailsRequest,
    WeightsRequest,
)

THUMBNAIL_SIZES = (64, 48, 32)
"""Thumbnails have at most so many pixels on a side, the largest that fits; a map no larger is its own thumbnail."""

MEASURED_AT_ONCE = 2**20
"""Weights that are computed to find the head that opens first, at most."""

GRID_BYTES = 384 * 1024
"""All thumbnails of a group fit into so many bytes, unless there are more heads than of the smallest do."""

EXACT_BYTES = 128 * 1024
"""So many bytes of exact maps are sent unasked."""


@dataclass(frozen=True, eq=False)
class MapPicture:
    """The picture whose patches are the keys of a group: special tokens first, then patches row by row."""

    pixels: UInt8[np.ndarray, "height width 3"]  # red, green and blue, as the model saw it
    grid: tuple[int, int]  # rows and columns of patches, or of the first of several feature maps
    num_special: int = 0  # tokens before the patches
    of_queries: bool = True  # whether the queries are its tokens as well; not those of a pooling head or a detector
    levels: tuple[tuple[int, int], ...] = ()  # rows and columns of feature maps that are read at points

    @property
    def num_tokens(self) -> int:
        """Special tokens and patches together, of all feature maps."""
        return self.num_special + sum(rows * columns for rows, columns in self.levels or (self.grid,))


@dataclass(frozen=True)
class MapGroup:
    """Maps of one kind (say, the decoder's cross-attention): one call for each layer, the same tokens in all.

    Hold on to a group between looks: it keeps its pictures, and a browser that has its tokens and
    maps is not sent them again.
    """

    id: str  # short name for links: lower-case letters, digits, "_" and "-"
    label: str  # name of the kind, for people
    queries_label: str  # what the queries are, for people ("French")
    keys_label: str  # what the keys are, for people ("English")
    query_tokens: tuple[str, ...]  # one for each query, as they are; whoever draws them escapes them
    key_tokens: tuple[str, ...]  # one for each key
    calls: tuple[AttentionCall, ...]  # the layers, first to last
    row: int = 0  # which row of the batch
    # the number of the word each query is a piece of (`viz_core.maps.word_numbers`); None where every token is a word
    query_words: tuple[int, ...] | None = None
    key_words: tuple[int, ...] | None = None  # the same for keys
    alignment_errors: HeadErrors = ()  # the alignment error rates of the heads, where they were measured for the model
    rows_sum_to_one: bool = True  # False for contribution lengths, which have no measures of heads
    # the picture the tokens are patches of, so that attention can lie over it; None for text
    image: MapPicture | None = field(default=None, compare=False, repr=False)
    # what answers for the maps; unless given, they are worked out from `calls`
    source: MapSource | None = field(default=None, compare=False, repr=False)
    # by which model, of which text: files that are saved say so
    provenance: Provenance = field(default=UNKNOWN, compare=False, repr=False)
    stamp: str = field(default_factory=lambda: secrets.token_hex(8), init=False, compare=False)
    """Differs between any two groups, also of two processes: a browser may have met the one before a restart."""
    _answers: dict[WeightsRequest, Found] = field(default_factory=dict, init=False, compare=False, repr=False)

    def __repr__(self) -> str:
        """Its kind and size, in a line."""
        sizes = f"{len(self.query_tokens)} queries, {len(self.key_tokens)} keys"
        return f"MapGroup({self.id!r}: {len(self.calls)} layers, {len(self.heads)} heads, {sizes})"

    def __post_init__(self) -> None:
        if not re.fullmatch("[a-z0-9_-]{1,32}", self.id):
            raise ValueError(f"id: expected 1 to 32 of a-z, 0-9, _ and -, got {self.id!r}")
        if not self.calls:
            raise ValueError(f"calls of {self.id!r}: expected at least one layer, got none")
        tokens = len(self.query_tokens), len(self.key_tokens)
        for call in self.calls:
            batch = call.source.shape[0]
            if (call.num_queries, call.num_keys) != tokens:
                raise ValueError(
                    f"tokens of {self.id!r}: expected {call.num_queries} for queries and {call.num_keys} for keys"
                    f" as in {call.site}, got {tokens[0]} and {tokens[1]}"
                )
            if not 0 <= self.row < batch:
                raise ValueError(f"row of {self.id!r}: expected 0 to {batch - 1}, got {self.row}")
        for name, words, number in (("query", self.query_words, tokens[0]), ("key", self.key_words, tokens[1])):
            if words is not None and len(words) != number:
                raise ValueError(
                    f"{name}_words of {self.id!r}: expected one for each of {number} tokens, got {len(words)}"
                )
        if self.image is not None and any(
            number != self.image.num_tokens for number in (tokens if self.image.of_queries else tokens[1:])
        ):
            sides = "queries and keys" if self.image.of_queries else "keys"
            raise ValueError(
                f"image of {self.id!r}: expected {self.image.num_tokens} {sides}, its special tokens and patches, got "
                f"{tokens[0]} and {tokens[1]}"
            )

    @cached_property
    def heads(self) -> tuple[tuple[int, int], ...]:
        """Layer and head of each, counted from 0."""
        return tuple((layer, head) for layer, call in enumerate(self.calls) for head in range(call.num_heads))

    @property
    def on_itself(self) -> bool:
        """Whether queries and keys are places of one sequence, so that a diagonal means something."""
        return len(self.query_tokens) == len(self.key_tokens) and all(call.kind != "cross" for call in self.calls)

    @property
    def separators(self) -> tuple[int, ...]:
        """Keys that separate or end ("[SEP]", "</s>", "<eos>" and their like)."""
        return separators(self.key_tokens)

    @property
    def thumbnail_size(self) -> int:
        """Pixels on a side of this group's thumbnails, at most: the more heads there are, the smaller each is drawn."""
        heads, rows, columns = len(self.heads), len(self.query_tokens), len(self.key_tokens)
        fitting = (size for size in THUMBNAIL_SIZES if heads * min(size, rows) * min(size, columns) <= GRID_BYTES)
        return next(fitting, THUMBNAIL_SIZES[-1])

    @property
    def is_small(self) -> bool:
        """Whether the exact maps of all heads take few bytes: a browser is sent them unasked."""
        return 4 * len(self.heads) * len(self.query_tokens) * len(self.key_tokens) <= EXACT_BYTES

    @property
    def sent_whole(self) -> bool:
        """Whether a browser is sent whole maps, not tiles of them."""
        return is_sent_whole(len(self.query_tokens), len(self.key_tokens))

    @cached_property
    def maps(self) -> MapSource:
        """What answers for the maps."""
        return self.source or ComputedMaps(
            self.calls,
            self.row,
            self.query_words,
            self.key_words,
            self.on_itself,
            self.separators,
            self.thumbnail_size,
            self.map_info.patches,
        )

    @cached_property
    def map_info(self) -> MapInfo:
        """What measures of heads need to know of the maps."""
        patches = (
            None
            if self.image is None or not self.image.of_queries
            else Patches(self.image.grid, self.image.num_special)
        )
        return MapInfo(len(self.query_tokens), len(self.key_tokens), self.on_itself, self.separators, patches)

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures of this group's maps, and those of its model; of signed maps, those that are theirs."""
        if not self.rows_sum_to_one:
            return ()
        rules = {(call.signed, hasattr(call.source, "log_decay")) for call in self.calls}
        infos = [replace(self.map_info, signed=signed, decays=decays) for signed, decays in rules]
        known = {name: bool(self.alignment_errors) for name in get_args(Reading)}
        return tuple(each for each in MEASURES.values() if known.get(each.name, True) and any(map(each.fits, infos)))

    def parts(self, requests: Sequence[WeightsRequest]) -> list[Found]:
        """What all these ask for, at once. Thumbnails are cached, and maps of a head where those of all are small."""
        new = [request for request in dict.fromkeys(requests) if request not in self._answers]
        found = dict(zip(new, self.maps.parts(new), strict=True)) if new else {}
        for request, one in found.items():
            if isinstance(request, ThumbnailsRequest) and isinstance(one, LayerPicture):
                self._answers[request] = self._with_errors(one, request.layer) if self.alignment_errors else one
            elif self.is_small and isinstance(one, Part) and isinstance(request, MapRequest) and not request.heads[1:]:
                self._answers[request] = one
        return [self._answers.get(request) or found[request] for request in requests]

    def pictures(self, layers: Sequence[int] | None = None) -> list[LayerPicture]:
        """Layers as the grid shows them, at once; all of them unless given."""
        parts = self.parts([*map(ThumbnailsRequest, range(len(self.calls)) if layers is None else layers)])
        if missing := [part for part in parts if isinstance(part, PartError)]:
            raise missing[0]
        return [part for part in parts if isinstance(part, LayerPicture)]

    def picture(self, layer: int) -> LayerPicture:
        """A layer as the grid shows it."""
        return self.pictures([layer])[0]

    def weights(self, layer: int, head: int) -> Float[Tensor, "queries keys"]:
        """The exact map of a head."""
        if self.is_small:
            (part,) = self.parts([MapRequest(((layer, head),))])
            if isinstance(part, Part):
                return torch.from_numpy(part.array.copy())
        return self.calls[layer].weights(head=head)[self.row]

    def _with_errors(self, picture: LayerPicture, layer: int) -> LayerPicture:
        """Add the alignment accuracies that are known of its heads."""
        fingerprints = with_accuracies(picture.fingerprints, self.alignment_errors[layer])
        return replace(picture, fingerprints=fingerprints)

    @cached_property
    def clearest(self) -> tuple[int, int] | None:
        """Layer and head whose pattern is easiest to name; None where none is, or where more than `MEASURED_AT_ONCE`
        weights would be computed to find it."""
        if len(self.heads) * len(self.query_tokens) * len(self.key_tokens) > MEASURED_AT_ONCE:
            return None
        return clearest_head([picture.fingerprints for picture in self.pictures()])

    @property
    def row_error(self) -> float:
        """max |1 - sum_j a_ij| over all rows of all heads, from what the pictures read anyway; NaN where one has it."""
        return float(np.max([picture.row_error for picture in self.pictures()]))

    def has_picture(self, layer: int) -> bool:
        """Whether the picture of this layer costs nothing any more."""
        return ThumbnailsRequest(layer) in self._answers
