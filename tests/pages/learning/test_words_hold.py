"""What the learning chapter says of its recorded runs, held against them."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pages.learning.reels import RECORDED
from tests.pages.reading import finding, findings, one_line, stands
from viz_core.lessons.learning.heads_over_time import head_measures, strongest_head
from viz_core.training.task_recording import SEEDS
from viz_core.training.tasks.film import Film, load_film

OpenPage = Callable[..., AppTest]
CHAPTER = "learning"
TWO_LAYERS = "repeat-two-layers"


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
def test_of_when_head_and_accuracy_change(open_page: OpenPage, seed: int) -> None:
    app = open_page(CHAPTER, **{"l-seed": str(seed)})
    stands(app)
    each = film(TWO_LAYERS, seed)
    measured = head_measures(each)["induction"]
    head = np.diff(measured[:, *strongest_head(measured)])
    moved, better = int(np.abs(head).argmax()), int(np.diff(each.held_out).argmax())
    assert finding(app, "change together", "do not change most at the same time") == (abs(moved - better) <= 1)


@pytest.mark.parametrize("seed", SEEDS)
def test_of_the_step_in_the_exercise(seed: int) -> None:
    """Around update 100, within 40 updates of each other and of the accuracy."""
    each = film(TWO_LAYERS, seed)
    measures = head_measures(each)
    (first, _), (second, _) = (strongest_head(measures[name]) for name in ("previous", "induction"))
    assert (first, second) == (0, 1)
    curves = [measures[name][:, *strongest_head(measures[name])] for name in ("previous", "induction")]
    ends = [each.shots[int(np.diff(curve).argmax()) + 1] for curve in [*curves, each.held_out]]
    assert max(ends) - min(ends) <= 40
    assert all(80 <= end <= 150 for end in ends)


def test_of_orders_past_the_length(open_page: OpenPage) -> None:
    app, found = open_page(CHAPTER), past_and_within()
    order = sorted(found, key=lambda name: -found[name][0].mean())
    names = {"alibi": "ALiBi", "t5": "T5"}
    said = one_line(app)
    for place, name in enumerate(order, start=1):
        past, within = found[name]
        row = f"| {names.get(name, name)} | {within.mean():.0%} | {past.mean():.0%} |"
        assert f"{row} {past.min():.0%} to {past.max():.0%} | {place} |" in said
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
        assert finding(app, f"the other way round from {paper} with", f"here from {paper}: ") == (not turned)
        for pair in turned:
            assert any(pair in sentence and paper in sentence for sentence in findings(app)), pair


def test_of_the_scheme_in_the_exercise() -> None:
    kept = {name: past.mean() / within.mean() for name, (past, within) in past_and_within().items()}
    assert {name for name in ("relative", "alibi", "rotary", "learned") if kept[name] < 2 / 3} == {"rotary", "learned"}


@pytest.mark.parametrize("seed", SEEDS)
def test_of_what_is_known_by_heart(open_page: OpenPage, seed: int) -> None:
    app = open_page(CHAPTER, **{"l-section": "By heart, then understood", "l-circle-seed": str(seed)})
    stands(app)
    each = film("modular-addition", seed)
    right = [each.accuracy[step - 10 : step].mean() if step else 0.0 for step in each.shots]
    first = next(place for place, share in enumerate(right) if share >= 0.99)
    stays = [place for place in range(len(each.shots)) if each.held_out[place:].min() >= 0.95]
    assert finding(app, "by heart after", "understood no later") == (stays[0] > first)
    assert f"{each.held_out[first]:.0%} of the other pairs right" in one_line(app)
