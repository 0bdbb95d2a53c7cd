"""What the Bahdanau chapter says of its pictures, held against what was drawn."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
from streamlit.testing.v1 import AppTest

from tests.pages.reading import drawn, finding, one_line, stands

OpenPage = Callable[..., AppTest]


def test_of_scores_by_length(open_page: OpenPage) -> None:
    """That attention's gap widens with the length was said of a picture in which it does not."""
    app = open_page("bahdanau")
    stands(app)
    lines = {trace["name"]: np.array(trace["y"], dtype=float) for trace in drawn(app, "lengths")}
    gaps = lines["GRU with attention"] - lines["GRU, plain"]
    widens = all(after > before for before, after in pairwise(gaps))
    assert finding(app, "the wider the gap", "the gap does not widen with every bin") == widens
    assert ", ".join(f"{gap:.1f}" for gap in gaps) in one_line(app)
