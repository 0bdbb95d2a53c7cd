"""Flip books: a view at every stop of a slider, sent to the browser in advance so that dragging needs no server.

A slider tells its server only where it was let go, and an answer takes as long as a page's round trip. The bytes are a
frame (`framing.frame`) whose header is

    pages  [{value, stamp, offset, length}]: from which value of the slider on a page is shown, the stamp of its
           base, and where its answer lies: what `payload.encode_view` makes of it, without the words

and assets/components/attention_view/flipbook.js turns the pages.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from viz_core.view.framing import Sections, frame
from viz_core.view.map_group import MapGroup
from viz_core.view.payload import View

MOST_BYTES = 4 * 2**20
"""A book that would be larger is not offered: each stop is waited for."""

_EACH = 5  # bytes of a weight: float32 in its map, one in its thumbnail


def is_small(groups: Sequence[MapGroup], stops: int) -> bool:
    """Whether a book of so many stops with maps of these sizes is small enough to send."""
    heads = sum(call.num_heads * call.num_queries * call.num_keys for group in groups for call in group.calls)
    return _EACH * heads * stops <= MOST_BYTES


def encode_flipbook(pages: Mapping[int, View], encode: Callable[[View], bytes]) -> bytes:
    """Encode all pages as bytes.

    Args:
        pages: what is shown from a value of the slider on, by that value, in rising order.
        encode: makes the answer that is a page.
    """
    if not pages or list(pages) != sorted(pages):
        raise ValueError(f"pages: expected values that rise, got {', '.join(map(str, pages)) or 'none'}")
    sections, placed = Sections(), []
    for value, view in pages.items():
        answer = encode(view)
        offset = sections.add(np.frombuffer(answer, np.uint8))
        placed.append({"value": value, "stamp": view.stamp, "offset": offset, "length": len(answer)})
    return frame({"pages": placed}, sections)
