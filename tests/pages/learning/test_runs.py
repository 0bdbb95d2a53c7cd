"""Recorded runs: jumps, orders past the trained length, and what the chapter says of both."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import torch

from pages.learning.figures import Jump, largest_jump, published_order, read_reaches, reversed_pairs, strongest_head
from pages.learning.parts import LEAST_INDUCTION
from pages.learning.runs import RECORDED
from recipes.task_recordings import SEEDS
from ui.text.words import load_words
from ui.widgets.predictions import read_prediction
from viz_core.lessons.learning.runs import head_measures
from viz_core.maps.measures import equal_tokens, offset_mass, target_mass
from viz_core.tasks.film import Film, load_film
from viz_core.trace import attention_weights

CHAPTER = "learning"
TWO_LAYERS = "repeat-two-layers"


def test_the_jump_is_the_largest_change_up_or_down() -> None:
    assert largest_jump((0, 10, 20, 30), np.array([0, 0.25, 1.0, 0.5])) == Jump(10, 20, 0.75)
    assert largest_jump((0, 10, 15), np.array([3.0, 1.0, 2.0])) == Jump(0, 10, -2.0)
    assert largest_jump((0,), np.array([3.0])) is None


def test_the_strongest_head_is_that_of_the_last_shot() -> None:
    measured = np.array([[[0.9, 0.1], [0.2, 0.3]], [[0.1, 0.2], [0.8, 0.4]]])
    assert strongest_head(measured) == (1, 0)


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
    assert reversed_pairs(read_reaches(SOME), "kazemnejad") == [("t5", "none"), ("rotary", "none")]
    assert reversed_pairs(read_reaches(SOME), "press") == []


@cache
def film(name: str, seed: int) -> Film:
    return load_film(RECORDED / f"{name}-{seed}.npz")


def past_and_within() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Of each scheme the three seeds' means past length 20, and up to it."""
    recorded = json.loads((RECORDED / "extrapolation.json").read_text(encoding="utf-8"))
    longer = np.array(recorded["lengths"]) > 20
    rows = {name: np.array(list(seeds.values())) for name, seeds in recorded["accuracy"].items()}
    assert {row.shape for row in rows.values()} == {(3, len(longer))}
    return {name: (row[:, longer].mean(axis=1), row[:, ~longer].mean(axis=1)) for name, row in rows.items()}


def test_of_the_scheme_in_the_exercise() -> None:
    ratios = {name: past.mean() / within.mean() for name, (past, within) in past_and_within().items()}
    assert {name for name in ("relative", "alibi", "rotary", "learned") if ratios[name] < 2 / 3} == {
        "rotary",
        "learned",
    }


def max_induction(name: str, seed: int) -> np.ndarray:
    """The most that any head has at each shot."""
    return head_measures(film(name, seed))["induction"].max(axis=(1, 2))


def test_of_what_one_layer_cannot_do() -> None:
    """Keys made of their own letter or place give two of the looks; the third, one layer never learned."""
    letters = film("repeat-one-layer", 0).read
    known = {letter: place for place, letter in enumerate(dict.fromkeys(letters))}
    spelt = torch.eye(len(known))[[known[letter] for letter in letters]][None, None]
    places = torch.eye(len(letters))[None, None]
    same = attention_weights(20 * spelt, spelt, scale=1.0)[0, 0]
    before = attention_weights(20 * places.roll(1, dims=-2), places, scale=1.0)[0, 0]  # asks for the place before
    cannot = (
        float(target_mass(same, equal_tokens(letters, letters))) < 0.99,
        float(offset_mass(before, -1)) < 0.99,
        max(max_induction("repeat-one-layer", seed).max() for seed in SEEDS) < LEAST_INDUCTION,
    )
    answers = read_prediction(load_words(CHAPTER, "en")("exercise.one-layer")).answers
    assert tuple(answer.mark == "x" for answer in answers) == cannot
    assert min(max_induction(TWO_LAYERS, seed)[-1] for seed in SEEDS) > LEAST_INDUCTION, "two layers can"
