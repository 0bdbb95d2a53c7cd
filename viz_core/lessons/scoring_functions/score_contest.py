"""Four scoring functions on the same queries and keys: what each makes of them, and what it costs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from viz_core.attention.masking import masked_softmax
from viz_core.attention.scoring import dot_scores, general_scores, scaled_dot_scores
from viz_core.lessons.scoring_functions.score_scenes import Scene, make_additive, make_matrix

SCORES = ("dot", "scaled", "general", "additive")
Score = Callable[[], Float[Tensor, "batch queries keys"]]


@dataclass(frozen=True, eq=False)
class Entry:
    """What one scoring function makes of a scene.

    Attributes:
        scores, weights: None where the function is not defined for the widths.
        found: share of queries whose largest weight is on their own key.
        parameters: numbers it learns.
        multiplications: for all pairs of the scene, projections included.
    """

    name: str
    scores: Float[Tensor, "batch queries keys"] | None
    weights: Float[Tensor, "batch queries keys"] | None
    found: float
    parameters: int
    multiplications: int


def contest(scene: Scene, num_hiddens: int, steps: int, seed: int = 0) -> dict[str, Entry]:
    """Score the scene four ways; general and additive learn first, `steps` steps of Adam.

    They lower the cross-entropy of each query's own key. Dot and scaled dot have nothing to learn.

    Raises:
        ValueError: if steps is negative, or steps are asked for on a scene that pairs nothing.
    """
    if steps < 0 or (steps and not scene.paired):
        raise ValueError(f"steps: expected {'at least 0' if scene.paired else '0 on unpaired queries'}, got {steps}")
    queries, keys = scene.queries, scene.keys
    M = make_matrix(scene, seed).requires_grad_()
    layer = make_additive(scene, num_hiddens, seed)
    learned: dict[str, tuple[Score, list[Tensor]]] = {
        "general": (lambda: general_scores(queries, keys, M), [M]),
        "additive": (lambda: layer.score(queries, layer.W_k(keys)), list(layer.parameters())),
    }
    scored = {name: _learn(score, parameters, steps) for name, (score, parameters) in learned.items()}
    if queries.shape[-1] == keys.shape[-1]:
        scored |= {"dot": dot_scores(queries, keys), "scaled": scaled_dot_scores(queries, keys)}
    return {name: _entry(name, scored.get(name), scene, num_hiddens) for name in SCORES}


def _learn(score: Score, parameters: list[Tensor], steps: int) -> Float[Tensor, "batch queries keys"]:
    optimizer = torch.optim.Adam(parameters, lr=0.05)
    with torch.enable_grad():
        for _ in range(steps):
            scores = score()
            target = torch.arange(scores.shape[1]).expand(scores.shape[:2])
            optimizer.zero_grad()
            F.cross_entropy(scores.flatten(0, 1), target.flatten()).backward()
            optimizer.step()
    with torch.no_grad():
        return score()


def _entry(name: str, scores: Tensor | None, scene: Scene, num_hiddens: int) -> Entry:
    weights = None if scores is None else masked_softmax(scores, scene.valid_lens)
    found = math.nan
    if weights is not None and scene.paired:
        found = float((weights.argmax(dim=-1) == torch.arange(weights.shape[1])).float().mean())
    return Entry(name, scores, weights, found, *_cost(name, scene, num_hiddens))


def _cost(name: str, scene: Scene, h: int) -> tuple[int, int]:
    """Parameters, and multiplications for all pairs."""
    batch, n, d_q = scene.queries.shape
    m, d_k = scene.keys.shape[1:]
    return {
        "dot": (0, batch * n * m * d_k),
        "scaled": (0, batch * n * m * (d_k + 1)),
        "general": (d_q * d_k, batch * (n * d_q * d_k + n * m * d_k)),
        "additive": (h * (d_q + d_k + 1), batch * h * (n * d_q + m * d_k + n * m)),
    }[name]


@torch.no_grad()
def additive_loop_error(scene: Scene, num_hiddens: int, seed: int = 0) -> float:
    """max |additive scores - the same, one pair at a time in float64|."""
    layer = make_additive(scene, num_hiddens, seed)
    fast = layer.score(scene.queries, layer.W_k(scene.keys))
    W_q, W_k, w_v = (weight.double() for weight in (layer.W_q.weight, layer.W_k.weight, layer.w_v.weight[0]))
    worst = 0.0
    for b in range(fast.shape[0]):
        for i, q in enumerate(scene.queries[b].double()):
            for j, k in enumerate(scene.keys[b].double()):
                worst = max(worst, abs(float(w_v @ torch.tanh(W_q @ q + W_k @ k)) - float(fast[b, i, j])))
    return worst


def general_identity_error(scene: Scene) -> float:
    """max |q^T I k - q^T k|: with the identity for M, general is dot.

    Raises:
        ValueError: if queries and keys differ in width: there is no square identity between them.
    """
    general = general_scores(scene.queries, scene.keys, torch.eye(*scene.widths))
    return float((general - dot_scores(scene.queries, scene.keys)).abs().max())


def general_projection_error(scene: Scene, rank: int = 4, seed: int = 0) -> float:
    """max |q^T (W_q^T W_k) k - (W_q q)^T (W_k k)|: general is the dot product of two projections."""
    generator = torch.Generator().manual_seed(seed)
    W_q, W_k = (torch.randn(rank, width, generator=generator) * width**-0.5 for width in scene.widths)
    general = general_scores(scene.queries, scene.keys, W_q.T @ W_k)
    return float((general - dot_scores(scene.queries @ W_q.T, scene.keys @ W_k.T)).abs().max())
