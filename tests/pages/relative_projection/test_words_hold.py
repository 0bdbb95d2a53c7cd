"""What the chapter on relative projection says of its pictures, held against what was drawn."""

from __future__ import annotations

import pytest

from tests.pages.reading import drawn, finding, stands
from tests.visits import Visits

CHAPTER = "relative-projection"


@pytest.mark.parametrize("kind", ["float64", "float32", "bfloat16", "float16"])
@pytest.mark.parametrize(("offset", "width"), [(0, 32), (-100, 4), (44, 512)])
def test_of_rounding(visits: Visits, kind: str, offset: int, width: int) -> None:
    params = {"rp-type": kind, "rp-offset": str(offset), "rp-width": str(width)}
    app = visits(CHAPTER, **params)
    stands(app)
    points, line = drawn(app, "residual")
    above = bool((points["customdata"] > line["y"][0]).any())
    assert finding(app, "No point is above the line", "Points are above the line") is not above
