"""Recorded runs: jumps, orders past the trained length, and what the chapter says of both."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest
import torch
from jaxtyping import Float

from pages.learning.figures import Jump, largest_jump, published_order, read_reaches, reversed_pairs, strongest_head
from pages.learning.parts import LEAST_INDUCTION
from pages.learning.runs import RECORDED
from recipes.task_recordings import SEEDS
from tests.pages.reading import finding, findings, one_line, stands
from tests.visits import Visits
from ui.text.words import load_words
from ui.widgets.predictions import read_prediction
from viz_core.lessons.learning.runs import head_measures
from viz_core.maps.measures import equal_tokens, offset_mass, target_mass
from viz_core.tasks import Shape, TaskTransformer
from viz_core.tasks.film import Film, load_film
from viz_core.trace import attention_weights, record

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


@pytest.mark.parametrize("seed", SEEDS)
def test_of_when_head_and_accuracy_change(visits: Visits, seed: int) -> None:
    app = visits(CHAPTER, **{"l-seed": str(seed)})
    stands(app)
    each = film(TWO_LAYERS, seed)
    measured = head_measures(each)["induction"]
    change = 100 * float(np.diff(each.held_out.astype(np.float64)).max())
    assert f"held-out accuracy, +{change:.0f} percentage points" in one_line(app)
    head = np.diff(measured[:, *strongest_head(measured)])
    changed, better = int(np.abs(head).argmax()), int(np.diff(each.held_out).argmax())
    assert finding(app, "change together", "change most at different times") == (abs(changed - better) <= 1)


@pytest.mark.parametrize("seed", SEEDS)
def test_of_heads_that_change_together(seed: int) -> None:
    """Around update 100, within 40 updates of each other and of the accuracy."""
    each = film(TWO_LAYERS, seed)
    measures = head_measures(each)
    (first, _), (second, _) = (strongest_head(measures[name]) for name in ("previous", "induction"))
    assert (first, second) == (0, 1)
    curves = [measures[name][:, *strongest_head(measures[name])] for name in ("previous", "induction")]
    ends = [each.shots[int(np.diff(curve).argmax()) + 1] for curve in [*curves, each.held_out]]
    assert max(ends) - min(ends) <= 40
    assert all(80 <= end <= 150 for end in ends)


def test_of_orders_past_the_length(visits: Visits) -> None:
    app, found = visits(CHAPTER), past_and_within()
    order = sorted(found, key=lambda name: -found[name][0].mean())
    names = {"alibi": "ALiBi", "t5": "T5", "relative": "relative, clipped (Shaw)"}
    page_text = one_line(app)
    for place, name in enumerate(order, start=1):
        past, within = found[name]
        row = f"| {names.get(name, name)} | {within.mean():.0%} | {past.mean():.0%} |"
        assert f"{row} {past.min():.0%} to {past.max():.0%} | {place} |" in page_text
    for paper, published in {
        "Kazemnejad 2023": ["none", "t5", "alibi", "rotary", "sinusoidal"],
        "Press 2022": ["alibi", "t5", "rotary", "sinusoidal"],
    }.items():
        turned = [
            f"{names.get(b, b)} before {names.get(a, a)}"
            for i, a in enumerate(published)
            for b in published[i + 1 :]
            if found[b][0].min() > found[a][0].max()
        ]
        assert finding(
            app,
            f"No pair of schemes is in the opposite order from {paper}",
            f"these are in the opposite order from {paper}: ",
        ) == (not turned)
        for pair in turned:
            assert any(pair in sentence and paper in sentence for sentence in findings(app)), pair


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


@pytest.mark.parametrize(("layers", "knows"), [(1, False), (2, True)])
def test_of_what_a_key_knows_of_the_letter_before_it(layers: int, knows: bool) -> None:
    """Another first letter, and how the last one shares its attention among all but the first."""
    torch.manual_seed(0)
    model = TaskTransformer(5, Shape(layers))

    def shared(first: int) -> Float[torch.Tensor, "1 heads keys"]:
        with record() as trace, torch.no_grad():
            model(torch.tensor([[first, 1, 2, 3, 4]]))
        weights = trace[trace.sites[-1]].weights(queries=slice(4, 5))[:, :, 0, 1:]
        return weights / weights.sum(dim=-1, keepdim=True)

    assert (float((shared(0) - shared(3)).abs().max()) > 1e-4) == knows
