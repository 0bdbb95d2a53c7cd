"""The sources' numbers for the sinusoidal table, beside ours."""

from __future__ import annotations

import math

import torch

from ui.chapter.chapter import Chapter
from viz_core.positional import angular_frequencies, sinusoidal_table


def sources(chapter: Chapter) -> None:
    """The book's table of 60 positions and 32 columns, and the longest wave."""
    table = sinusoidal_table(60, 32, dtype=torch.float64)
    waves = 2 * math.pi / angular_frequencies(32)
    chapter.sources(
        {
            "table": [*table[1, :4].tolist(), *table[59, 6:10].tolist()],
            "norm": table.square().sum(dim=1).mean().item(),
            "wavelengths": waves[3:5].tolist(),
            "similarity": (table[[1, 2, 5, 10, 20, 59]] @ table[0]).tolist(),
            "longest": 2 * math.pi / float(angular_frequencies(512)[-1]),
            "codes": ", ".join(f"{number:03b}" for number in range(8)),
        }
    )
