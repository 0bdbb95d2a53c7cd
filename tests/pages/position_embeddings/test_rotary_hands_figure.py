"""Pairs of a query and a key as hands of clocks."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from pages.position_embeddings.figures import hands_figure
from viz_core.positional import angular_frequencies

LABELS: dict[str, str] = defaultdict(lambda: "label", {"pair-number": "pair {pair}"})


def test_hands_stand_at_their_angles() -> None:
    figure = hands_figure(8, 3, angular_frequencies(64).numpy(), LABELS)
    omegas = angular_frequencies(64).numpy()[::4]
    for trace, position in ((figure.data[1], 8), (figure.data[2], 3)):
        x, y = (values.reshape(-1, 3) for values in (trace.x, trace.y))
        assert len(x) == 8
        angles = np.arctan2(x[:, 1] - x[:, 0], y[:, 1] - y[:, 0])  # clockwise from 12 o'clock
        np.testing.assert_allclose(np.exp(1j * angles), np.exp(1j * position * omegas), atol=1e-5)
    assert figure.data[3].text[:2] == ("pair 0", "pair 4")
