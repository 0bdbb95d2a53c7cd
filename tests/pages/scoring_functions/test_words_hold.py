"""What the scoring chapter says of its pictures, held against what was drawn."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest

from tests.pages.reading import charts, drawn, finding, number, one_line, stands
from tests.visits import Visits

CHAPTER = "scoring-functions"


@pytest.mark.parametrize(("d", "keys", "seed"), [(64, 16, 0), (1, 16, 0), (4, 64, 7), (1024, 2, 3), (16, 1, 0)])
def test_of_the_division(visits: Visits, d: int, keys: int, seed: int) -> None:
    app = visits(CHAPTER, **{"sf-d": str(d), "sf-keys": str(keys), "sf-seed": str(seed)})
    stands(app)
    *_, plain, scaled = (trace for trace in drawn(app, "sharpness") if "fill" not in trace)
    place = list(plain["x"]).index(d)
    more = finding(app, "more gradient reaches most queries", "lets no more gradient through")
    assert more == (scaled["y"][place] > plain["y"][place])
    assert f"reaches the query from {plain['y'][place]:.3f} to {scaled['y'][place]:.3f}" in one_line(app)

    edges = [trace["y"] for trace in drawn(app, "spread") if "fill" not in trace]
    undivided, divided = edges[1] - edges[0], edges[3] - edges[2]
    assert number(app, "Undivided, the light band is") == pytest.approx(undivided[0], rel=0.01)
    assert number(app, "Divided, it is") == pytest.approx(divided.min(), abs=0.01)


@pytest.mark.parametrize(("lengths", "x", "count"), [("as drawn", 1, 6), ("all alike", -2, 12), ("as drawn", 0, 1)])
def test_of_the_gaussian(visits: Visits, lengths: str, x: int, count: int) -> None:
    parameters = {"sf-lengths-of-keys": lengths, "sf-x": str(x), "sf-count": str(count)}
    app = visits(CHAPTER, **{"sf-section": "The Gaussian, taken apart"}, **parameters)
    stands(app)
    whole, without, alone = (bars["y"] for bars in drawn(app, "kept"))
    assert whole == pytest.approx(without, abs=1e-5)
    change = float(np.abs(whole - alone).max())
    assert number(app, "differs by up to") == pytest.approx(change, abs=6e-4)
    if change >= 5e-4:
        longest = int(np.argmin(drawn(app, "terms")[1]["y"]))  # its own term takes most away
        assert alone[longest] > whole[longest]


@pytest.mark.parametrize(
    ("scene", "steps", "seed"),
    [*product(("alike", "keys turned"), (0, 300), (0, 5)), ("20 against 2", 0, 0), ("20 against 2", 300, 0)],
)
def test_of_the_functions_compared(visits: Visits, scene: str, steps: int, seed: int) -> None:
    """A query has found its key where the largest weight of its row is on the diagonal."""
    parameters = {"sf-scene": scene, "sf-steps": str(steps), "sf-draw": str(seed)}
    app = visits(CHAPTER, **{"sf-section": "Functions compared"}, **parameters)
    stands(app)
    found = {}
    for alt, traces in charts(app, "scores"):
        weights = traces[0]["z"]
        found[alt.split(":")[0]] = float((np.nanargmax(weights, axis=1) == np.arange(len(weights))).mean())
    if scene == "keys turned":
        lost = finding(app, "the rotation hides them", "Here the dot product finds every pair")
        assert lost == (found["Dot product"] < 1)
    shares = re.findall(r"own key: (\d+%) \(chance: 17%\)", one_line(app))
    assert shares == [f"{share:.0%}" for share in found.values()]
