"""Queries and keys for comparing scoring functions: similar, rotated, of different widths, and the book's."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from viz_core.attention.scores.additive import make_additive
from viz_core.attention.scores.function import ScoreSizes, ScoreWidths

NUM_PAIRS = 6
NOISE = 0.15


@dataclass(frozen=True, eq=False)
class Scene:
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
