"""Maps with their tokens along both sides."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from ui.blocks.figures import token_map

LABELS: dict[str, str] = defaultdict(lambda: "label")


@pytest.mark.parametrize(("shown", "limits"), [("added", (-4, 4)), ("scores", (-4, 4)), ("weights", (0, 1))])
def test_the_map_has_its_scale_and_its_tokens(shown: str, limits: tuple[float, float]) -> None:
    figure = token_map(np.eye(3), ["<b>", "b", "c"], shown, LABELS)
    assert figure.data[0].z.tolist() == np.eye(3).tolist()
    assert (figure.data[0].zmin, figure.data[0].zmax) == limits
    assert figure.layout.xaxis.ticktext == figure.layout.yaxis.ticktext == ("&lt;b&gt;", "b", "c")


def test_labels_that_would_run_into_each_other_are_left_out() -> None:
    for count, text in ((32, True), (33, False)):
        figure = token_map(np.eye(count), ["a"] * count, "weights", LABELS)
        assert figure.layout.xaxis.showticklabels is text
