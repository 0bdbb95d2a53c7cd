"""The circuit of induction: how it grows in a run trained again, and what the page says of it."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from streamlit.testing.v1 import AppTest

from pages.learning.circuit_growth import growth
from serving.requests.circuit_growth import swapped_rows
from tests.pages.reading import drawn, one_line, stands

OpenPage = Callable[..., AppTest]


def test_rows_differ_in_two_letters_and_so_in_the_one_that_must_follow() -> None:
    clean, corrupted, metric = swapped_rows(26)
    rows, others = clean["tokens"], corrupted["tokens"]
    assert (rows != others).sum(dim=1).tolist() == [2] * len(rows)
    following = [row[row[:8].tolist().index(int(row[-1])) + 1] for row in rows]
    swapped = [row[row[:8].tolist().index(int(row[-1])) + 1] for row in others]
    logits = torch.zeros(len(rows), rows.shape[1], 26)
    for i, (right, wrong) in enumerate(zip(following, swapped, strict=True)):
        logits[i, -1, right], logits[i, -1, wrong] = 3.0, 1.0
    assert float(metric(logits)) == pytest.approx(2.0)


@pytest.mark.usefixtures("shapes_unchecked")
def test_the_circuit_of_induction_grows_and_the_page_says_by_how_much(open_page: OpenPage) -> None:
    app = open_page("learning", **{"l-open-growth": "true", "l-grow": "true"})
    stands(app)
    found = growth("repeat-two-layers", 0)
    assert np.isnan(found.alone[0])
    assert found.alone[-1] > found.random[-1].mean() + found.random[-1].std()
    widest = max((pair for pair in found.edges if pair[0].receiver), key=lambda pair: abs(pair[1]))[0]
    assert (widest.sender[0], widest.receiver[0], widest.to) == ("decoder.0.self", "decoder.1.self", "keys")
    assert f"keeps **{found.alone[-1]:.0%}** at the end" in one_line(app)
    np.testing.assert_allclose(drawn(app, "growth")[0]["y"][2:], found.alone[2:], atol=1e-5)
