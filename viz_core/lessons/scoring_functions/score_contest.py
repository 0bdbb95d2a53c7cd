"""Scoring functions on the same queries and keys: scores, weights and costs, also of two words."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from viz_core.attention import MultiHeadAttention
from viz_core.attention.masking import masked_softmax
from viz_core.attention.scores import FUNCTIONS, dot_scores, general_scores
from viz_core.attention.scores.additive import make_additive
from viz_core.attention.scores.function import ScoreCost, Scores, ScoreSizes, ScoreWidths, ScoringFunction
from viz_core.models import TransformerEncoder
from viz_core.trace import attention_weights

NUM_PAIRS = 6
NOISE = 0.15


class Scene(NamedTuple):
    """Queries and keys; query i belongs to key i where there is something to find."""

    queries: Float[Tensor, "batch queries query_size"]
    keys: Float[Tensor, "batch keys key_size"]
    valid_lens: Int[Tensor, " batch"] | None = None  # how many keys each batch row may see; None for all
    paired: bool = True  # whether query i belongs to key i

    @property
    def widths(self) -> tuple[int, int]:
        """Width of a query and width of a key."""
        return self.queries.shape[-1], self.keys.shape[-1]

    def sizes(self, num_hiddens: int) -> ScoreSizes:
        """What a scoring function is made for, and what its cost depends on."""
        batch, n = self.queries.shape[:2]
        return ScoreSizes(batch, n, self.keys.shape[1], ScoreWidths(*self.widths, num_hiddens))


def alike(seed: int = 0, d: int = 8) -> Scene:
    """Each query is its key with a little noise, which suits the dot product."""
    keys, noise = _normal(seed, NUM_PAIRS, d), _normal(seed + 1, NUM_PAIRS, d)
    return Scene((keys + NOISE * noise)[None], keys[None])


def turned(seed: int = 0, d: int = 8) -> Scene:
    """The same with all keys rotated by one orthogonal matrix."""
    scene = alike(seed, d)
    rotation, _ = torch.linalg.qr(_normal(seed + 2, d, d))
    return Scene(scene.queries, scene.keys @ rotation)


def widths(seed: int = 0, query_size: int = 20, key_size: int = 2) -> Scene:
    """Wide queries and narrow keys: a query is a linear map of its key, with noise. The keys lie on a circle."""
    angles = 2 * torch.pi * torch.arange(NUM_PAIRS) / NUM_PAIRS
    waves = torch.stack([torch.cos(angles), torch.sin(angles)], dim=-1)
    keys = 2**0.5 * waves.repeat(1, -(-key_size // 2))[:, :key_size]
    queries = keys @ _normal(seed, key_size, query_size) + NOISE * _normal(seed + 1, NUM_PAIRS, query_size)
    return Scene(queries[None], keys[None])


def the_books(seed: int = 0) -> Scene:
    """The book's toy: one query of width 20 in each of two batch rows, ten keys of ones, lengths 2 and 6."""
    return Scene(_normal(seed, 2, 20)[:, None], torch.ones(2, 10, 2), torch.tensor([2, 6]), paired=False)


SCENES: dict[str, Callable[[int], Scene]] = {"alike": alike, "turned": turned, "widths": widths, "book": the_books}


@torch.inference_mode()
def book_example_error() -> float:
    """max |additive attention - (2, 3, 4, 5), (10, 11, 12, 13)| on the book's toy with values 0 to 39.

    All keys are alike, so whatever the weights of the layer are, each query takes the plain mean of
    its 2 or 6 valid values (Dive into Deep Learning, section "Additive Attention"); shape (2, 1, 4).
    """
    scene = the_books()
    values = torch.arange(40.0).reshape(1, 10, 4).repeat(2, 1, 1)
    output = make_additive(scene.sizes(8).widths)(scene.queries, scene.keys, values, scene.valid_lens)
    expected = torch.tensor([[[2.0, 3, 4, 5]], [[10.0, 11, 12, 13]]])
    return float((output - expected).abs().max())


def _normal(seed: int, *shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


class ScoreResult(NamedTuple):
    """Scores, weights and cost of one scoring function on a scene."""

    name: str
    # scores, weights: None where the function is not defined for the widths
    scores: Scores | None
    weights: Scores | None
    found: float  # share of queries whose largest weight is on their own key
    parameters: int  # numbers it learns
    multiplications: int  # for all pairs of the scene, projections included

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


class WordScores(NamedTuple):
    """One head on one sentence."""

    # queries, keys: each word projected by the head's slices of W_q and W_k
    queries: Float[Tensor, "n w"]
    keys: Float[Tensor, "n w"]

    def terms(self, query: int, key: int) -> Float[Tensor, " w"]:
        """q_t k_t for every component t: their sum is the score."""
        return self.queries[query] * self.keys[key]

    def scores(self, query: int) -> Float[Tensor, " n"]:
        """q . k / sqrt(w) with every word's key (Vaswani 2017, equation 1)."""
        return self.keys @ self.queries[query] / self.keys.shape[1] ** 0.5

    def weights(self, query: int) -> Float[Tensor, " n"]:
        """softmax of the scores, as the layer computes them."""
        rows = attention_weights(self.queries[None, None, query : query + 1], self.keys[None, None])
        return rows[0, 0, 0]


@torch.inference_mode()
def last_layer_input(encoder: TransformerEncoder, X: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
    """Input of an encoder's last attention, for words whose embeddings are the rows of X.

    Positions are added, then all blocks but the last one are applied.
    """
    seen = encoder.pos_encoding(X[None].to(encoder.embedding.weight))
    for block in list(encoder.blocks)[:-1]:
        seen = block(seen)
    return seen[0]


@torch.inference_mode()
def word_scores(layer: MultiHeadAttention, X: Float[Tensor, "n d"], head: int) -> WordScores:
    """Queries and keys of one head for words whose vectors, as they come to the layer, are the rows of X."""
    seen = X.to(layer.W_q.weight)
    slices = slice(head * layer.head_dim, (head + 1) * layer.head_dim)
    return WordScores(layer.W_q(seen)[:, slices].float().cpu(), layer.W_k(seen)[:, slices].float().cpu())
