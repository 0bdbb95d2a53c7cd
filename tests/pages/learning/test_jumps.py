"""Jumps of curves over a run, and the strongest head."""

from __future__ import annotations

import numpy as np

from pages.learning.figures import Jump, largest_jump, strongest_head


def test_the_jump_is_the_largest_change_up_or_down() -> None:
    assert largest_jump((0, 10, 20, 30), np.array([0, 0.25, 1.0, 0.5])) == Jump(10, 20, 0.75)
    assert largest_jump((0, 10, 15), np.array([3.0, 1.0, 2.0])) == Jump(0, 10, -2.0)
    assert largest_jump((0,), np.array([3.0])) is None


def test_the_strongest_head_is_that_of_the_last_shot() -> None:
    measured = np.array([[[0.9, 0.1], [0.2, 0.3]], [[0.1, 0.2], [0.8, 0.4]]])
    assert strongest_head(measured) == (1, 0)
