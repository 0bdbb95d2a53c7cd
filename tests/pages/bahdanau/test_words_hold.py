"""What the Bahdanau chapter says of its pictures, held against what was drawn."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.bahdanau.parts import CHANCE
from tests.pages.reading import drawn, finding, one_line, stands
from viz_core.pretrained import available

OpenPage = Callable[..., AppTest]


@pytest.fixture(scope="module")
def app(open_page: OpenPage) -> AppTest:
    return open_page("bahdanau")


def test_of_scores_by_length(app: AppTest) -> None:
    """That attention's gain grows with the length was said of scores of which it is not true."""
    stands(app)
    lines = {trace["name"]: np.array(trace["y"], dtype=float) for trace in drawn(app, "alike")}
    with_attention, plain = lines["GRU with attention"], lines["GRU, plain"]
    grows = all(after > before for before, after in pairwise(with_attention - plain))
    assert finding(app, "The gain grows with the length", "The gain does not grow with every bin") == grows
    assert ", ".join(f"{ratio:.1f}" for ratio in with_attention / plain) in one_line(app)
    measured = {card.name: card.training for card in available()}["bahdanau-en-fr"]["alignments"]
    level = abs(measured["written"][0][0] - measured["diagonal"]) <= CHANCE
    assert finding(app, "about as well as place alone", "for that just read; place alone") == level
