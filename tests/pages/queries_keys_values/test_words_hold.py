"""What the chapter on queries, keys and values says of its pictures, held against data and against counts made anew."""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from itertools import pairwise

import pytest

from tests.pages.reading import drawn, finding, number, one_line, stands
from tests.visits import Visits

CHAPTER = "queries-keys-values"


def likeness(a: str, b: str) -> float:
    """Of two words, by their letters and pairs, a mark at either end."""
    left, right = (Counter([*word, *(x + y for x, y in pairwise(f"<{word}>"))]) for word in (a.lower(), b.lower()))
    lengths = math.sqrt(sum(n * n for n in left.values()) * sum(n * n for n in right.values()))
    return sum(count * right[name] for name, count in left.items()) / lengths


@pytest.mark.parametrize("temperature", ["0.01", "0.2", "100.0"])
@pytest.mark.parametrize(
    "names", [None, [["Li", "Mu"], ["Liptons", "x"]], [["Lipton", "Z"], ["Li", "Mu"], ["li", "no"]]]
)
def test_of_misspelled_names(visits: Visits, names: list[list[str]] | None, temperature: str) -> None:
    params = {} if names is None else {"qkv-names": json.dumps(names)}
    app = visits(CHAPTER, **{"qkv-temperature": temperature}, **params)
    stands(app, "every key gives itself all the weight")  # Li and li do not
    keys = [row[0] for row in app.dataframe[0].value.values.tolist()]
    first = []
    for query, key in (("Lipten", "Lipton"), ("li", "Li")):
        weights = {other: math.exp(likeness(query, other) / float(temperature)) for other in keys}
        found = key in keys and query not in keys and weights[key] == max(weights.values())
        first.append(weights[key] / sum(weights.values()) if found else 0)
    if finding(app, "yet soft lookup favours", "still weights every key"):
        printed = re.search(r"favours Lipton \(([\d.]+)\) and Li \(([\d.]+)\)\.", one_line(app))
        assert printed
        assert list(map(float, printed.groups())) == pytest.approx(first, abs=6e-4)
    else:
        assert not all(first)


@pytest.mark.parametrize("weight", [-1.0, -0.05, 0.4])
def test_of_the_plane(visits: Visits, weight: float) -> None:
    """A weight below zero need not leave the cone, and the page says how far from it the star is."""
    values = json.dumps([["1", "0", "0.5"], ["0", "1", "0.5"], ["1", "1", str(weight)]])
    app = visits(CHAPTER, **{"qkv-values": values, "qkv-case": "any"})
    stands(app)
    x = y = 0.5 + weight
    assert number(app, "from the convex hull and") == pytest.approx(0 if x >= 0 else math.hypot(x, y), abs=6e-4)
    inside = 0.5 <= x <= 1  # the triangle of the three values, on its diagonal
    assert (number(app, "up to the star,") == 0) == inside


def test_of_weights(visits: Visits) -> None:
    app = visits(CHAPTER, **{"qkv-temperature": "0.01"})
    assert (drawn(app, "weights")[0]["x"] > 0).all()  # no key is ever quite out
