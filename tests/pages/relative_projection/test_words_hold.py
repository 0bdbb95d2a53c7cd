"""What the chapter on relative projection says of its pictures, held against what was drawn."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from streamlit.testing.v1 import AppTest

from tests.pages.reading import badges, drawn, finding, number, stands

OpenPage = Callable[..., AppTest]
CHAPTER = "relative-projection"
LEARNED = ("unseen rows", "entry by entry")  # what a fit need not have learned


@pytest.mark.parametrize("reach", [100, 10_000, 1_000_000])
@pytest.mark.parametrize(("width", "base"), [(32, 10_000), (4, 100)])
def test_of_the_fit(open_page: OpenPage, reach: int, width: int, base: int) -> None:
    params = {"rp-reach": str(reach), "rp-width": str(width), "rp-base": str(base), "rp-offset": "7"}
    app = open_page(CHAPTER, **{"rp-section": "Can a model learn it?"}, **params)
    stands(app, *LEARNED)
    seen, unseen, _ = drawn(app, "fit")
    place = list(unseen["x"]).index(reach)
    holds = unseen["customdata"][place] <= 1e-6
    assert holds == next(found for claim, found in badges(app).items() if LEARNED[0] in claim)
    assert number(app, "On training rows the error is") == pytest.approx(seen["customdata"][place], rel=0.05)


@pytest.mark.parametrize("kind", ["float64", "float32", "bfloat16", "float16"])
@pytest.mark.parametrize(("offset", "width"), [(0, 32), (-100, 4), (44, 512)])
def test_of_rounding(open_page: OpenPage, kind: str, offset: int, width: int) -> None:
    params = {"rp-type": kind, "rp-offset": str(offset), "rp-width": str(width)}
    app = open_page(CHAPTER, **{"rp-section": "What each number type costs"}, **params)
    stands(app, *LEARNED)
    points, line = drawn(app, "residual")
    above = bool((points["customdata"] > line["y"][0]).any())
    assert finding(app, "No point is above the line", "Points are above the line") is not above
    worst = max(trace["y"].max() for trace in drawn(app, "types") if trace["name"] == "bfloat16")
    assert number(app, "its error reaches") == pytest.approx(worst if offset else 0, rel=0.05)
