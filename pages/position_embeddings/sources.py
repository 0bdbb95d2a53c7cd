"""What the sources print of positions in attention, beside ours."""

from __future__ import annotations

import torch

from ui.chapter.chapter import Chapter
from viz_core.positional import RelativePositionEmbedding1d, alibi_slopes, t5_relative_position_bucket

_DISTANCES = (7, 8, 11, 12, 15, 16, 22, 23, 31, 32, 45, 46, 63, 64, 90, 91)


def sources(chapter: Chapter) -> None:
    """Offsets, slopes and buckets computed; what papers measured, as they printed it."""
    offsets = next(iter(RelativePositionEmbedding1d(4, 8).parameters()))
    buckets = t5_relative_position_bucket(-torch.tensor(_DISTANCES))
    chapter.sources(
        {
            "offsets": len(offsets),
            "shared-heads": len(next(iter(RelativePositionEmbedding1d(4, 8, num_heads=2).parameters()))),
            "grid": None,
            "slopes": alibi_slopes(8).tolist(),
            "slopes-16": alibi_slopes(16)[[0, -1]].tolist(),
            "buckets": buckets.tolist(),
            "clipping": None,
            "rotary": None,
            "rank": None,
            "longer": None,
            "small-tasks": None,
        }
    )
