"""Orders past the trained length, by hand."""

from __future__ import annotations

import numpy as np

from pages.learning.figures import published_order, read_reaches, turned_round


def recorded(**accuracy: list[list[float]]) -> dict[str, object]:
    seeds = {name: {str(i): row for i, row in enumerate(rows)} for name, rows in accuracy.items()}
    return {"lengths": [10, 20, 40, 60], "plan": {"longest": 20}, "accuracy": seeds}


SOME = recorded(
    none=[[1, 0.8, 0.1, 0.1], [1, 0.6, 0.3, 0.1]],  # past: 0.1 and 0.2
    rotary=[[1, 1, 0.8, 0.6], [1, 1, 0.4, 0.2]],  # 0.7 and 0.3
    t5=[[1, 1, 0.5, 0.3], [1, 1, 0.9, 0.9]],  # 0.4 and 0.9
    learned=[[1, 1, 0, 0]],
)


def test_the_best_past_its_length_comes_first() -> None:
    reaches = read_reaches(SOME | {"accuracy": {**SOME["accuracy"], "alibi": {}}})  # type: ignore[dict-item]
    assert list(reaches) == ["t5", "rotary", "none", "learned"]
    np.testing.assert_allclose(reaches["none"].past, [0.1, 0.2])
    np.testing.assert_allclose(reaches["none"].within, [0.9, 0.8])
    np.testing.assert_allclose(reaches["none"].mean, [1, 0.7, 0.2, 0.1])
    np.testing.assert_allclose([reaches["none"].low, reaches["none"].high], [[1, 0.6, 0.1, 0.1], [1, 0.8, 0.3, 0.1]])


def test_orders_of_the_papers() -> None:
    assert published_order("kazemnejad") == ["none", "t5", "alibi", "rotary", "sinusoidal"]
    assert published_order("press") == ["alibi", "t5", "rotary", "sinusoidal"]


def test_only_what_every_seed_turns_round_is_said_to_differ() -> None:
    """Rotary and T5 overlap; both are above none with each seed. Learned stands in no paper's table."""
    assert turned_round(read_reaches(SOME), "kazemnejad") == [("t5", "none"), ("rotary", "none")]
    assert turned_round(read_reaches(SOME), "press") == []
