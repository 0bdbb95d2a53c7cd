"""Scoring functions on the same queries and keys: scores, weights and costs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F

from viz_core.attention.masking import masked_softmax
from viz_core.attention.scores import dot_scores, general_scores
from viz_core.attention.scores.additive import make_additive
from viz_core.attention.scores.function import ScoreCost, Scores, ScoreSizes, ScoringFunction
from viz_core.attention.scores.register import FUNCTIONS
from viz_core.lessons.scoring_functions.score_scenes import Scene


@dataclass(frozen=True, eq=False)
class ScoreResult:
    """Scores, weights and cost of one scoring function on a scene.

    Attributes:
        scores, weights: None where the function is not defined for the widths.
        found: share of queries whose largest weight is on their own key.
        parameters: numbers it learns.
        multiplications: for all pairs of the scene, projections included.
    """

    name: str
    scores: Scores | None
    weights: Scores | None
    found: float
    parameters: int
    multiplications: int

    @property
    def largest(self) -> float:
        """The largest weight of a query, mean over the queries; NaN where the function is not defined."""
        return math.nan if self.weights is None else float(self.weights.amax(dim=-1).mean())


def contest(
    scene: Scene, num_hiddens: int, steps: int, seed: int = 0, functions: Sequence[ScoringFunction[Any]] = FUNCTIONS
) -> dict[str, ScoreResult]:
    """Score the scene by every function; those with parameters learn first, `steps` steps of Adam.

    They lower the cross-entropy of each query's own key.
    """
    sizes = scene.sizes(num_hiddens)
    scored = {f.name: _learn(f, scene, sizes, steps, seed) for f in functions if f.takes(sizes.widths)}
    return {f.name: _entry(f.name, scored.get(f.name), scene, f.cost(sizes)) for f in functions}


def _learn(function: ScoringFunction[Any], scene: Scene, sizes: ScoreSizes, steps: int, seed: int) -> Scores:
    learned = function.make(sizes.widths, seed)
    parameters = list(learned.parameters())
    if parameters and steps:
        optimizer = torch.optim.Adam(parameters, lr=0.05)
        target = torch.arange(sizes.queries).repeat(sizes.batch)
        with torch.enable_grad():
            for _ in range(steps):
                optimizer.zero_grad()
                scores = function.scores(learned, scene.queries, scene.keys)
                F.cross_entropy(scores.flatten(0, 1), target).backward()
                optimizer.step()
    with torch.no_grad():
        return function.scores(learned, scene.queries, scene.keys)


def _entry(name: str, scores: Scores | None, scene: Scene, cost: ScoreCost) -> ScoreResult:
    weights = None if scores is None else masked_softmax(scores, scene.valid_lens)
    found = math.nan
    if weights is not None and scene.paired:
        found = float((weights.argmax(dim=-1) == torch.arange(weights.shape[1])).float().mean())
    return ScoreResult(name, scores, weights, found, *cost)


@torch.no_grad()
def additive_loop_error(scene: Scene, num_hiddens: int, seed: int = 0) -> float:
    """max |additive scores - the same, one pair at a time in float64|."""
    layer = make_additive(scene.sizes(num_hiddens).widths, seed)
    fast = layer.score(scene.queries, layer.W_k(scene.keys))
    W_q, W_k, w_v = (weight.double() for weight in (layer.W_q.weight, layer.W_k.weight, layer.w_v.weight[0]))
    worst = 0.0
    for b in range(fast.shape[0]):
        for i, q in enumerate(scene.queries[b].double()):
            for j, k in enumerate(scene.keys[b].double()):
                worst = max(worst, abs(float(w_v @ torch.tanh(W_q @ q + W_k @ k)) - float(fast[b, i, j])))
    return worst


def general_identity_error(scene: Scene) -> float:
    """max |q^T I k - q^T k|: with the identity for M, general is dot."""
    general = general_scores(scene.queries, scene.keys, torch.eye(*scene.widths))
    return float((general - dot_scores(scene.queries, scene.keys)).abs().max())


def general_projection_error(scene: Scene, rank: int = 4, seed: int = 0) -> float:
    """max |q^T (W_q^T W_k) k - (W_q q)^T (W_k k)|: general is the dot product of two projections."""
    generator = torch.Generator().manual_seed(seed)
    W_q, W_k = (torch.randn(rank, width, generator=generator) * width**-0.5 for width in scene.widths)
    general = general_scores(scene.queries, scene.keys, W_q.T @ W_k)
    return float((general - dot_scores(scene.queries @ W_q.T, scene.keys @ W_k.T)).abs().max())
