"""Tokens in another order, and one layer under every position scheme."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from einops import rearrange
from jaxtyping import Float, Int
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from viz_core.positional import BY_NAME
from viz_core.positional.entry import PositionScheme, SchemeEntry, SchemeSizes
from viz_core.pretrained import ModelCard, shipped
from viz_core.pretrained.token_vectors import Tokens
from viz_core.trace import attend, attention_weights

Queries = Float[Tensor, "1 heads n d"]
Module = TypeVar("Module", bound=nn.Module | PositionScheme)


@dataclass(frozen=True, eq=False)
class SharedLayer:
    """softmax(rotate(Q) rotate(K)^T / sqrt(d) + bias) V, with Q, K, V made from X + table, d the width of a head.

    The projections and every scheme's parameters are drawn from `seed`: nothing here is trained. Parameters are
    drawn so that each scheme adds scores of about the same size, a standard deviation near 1.
    """

    X: Float[Tensor, "n d"]  # token vectors of about unit variance
    sizes: SchemeSizes  # n, d and the rest; n and d must be those of X
    table: Float[Tensor, "n d"] | None = None  # learned positions to use in place of random ones
    seed: int = 0

    def scores(self, scheme: SchemeEntry) -> Float[Tensor, "heads n n"]:
        """rotate(Q) rotate(K)^T / sqrt(d) + bias: the input of the softmax."""
        q, k, _, bias = self.project(scheme)
        return (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5 + bias)[0]

    def position_scores(self, scheme: SchemeEntry) -> Float[Tensor, "heads n n"]:
        """What positions add to the scores: those with this scheme minus those without positions."""
        return self.scores(scheme) - self.scores(BY_NAME["none"])

    def weights(self, scheme: SchemeEntry) -> Float[Tensor, "heads n n"]:
        """softmax(rotate(Q) rotate(K)^T / sqrt(d) + bias); every row sums to 1."""
        q, k, _, bias = self.project(scheme)
        return attention_weights(q, k, bias=bias)[0]

    def output(self, scheme: SchemeEntry) -> Float[Tensor, "n d"]:
        """softmax(rotate(Q) rotate(K)^T / sqrt(d) + bias) V, heads side by side."""
        q, k, v, bias = self.project(scheme)
        return rearrange(attend(q, k, v, bias=bias), "1 heads n d -> n (heads d)")

    @torch.no_grad()
    def project(self, scheme: SchemeEntry) -> tuple[Queries, Queries, Queries, Tensor]:
        """rotate(Q), rotate(K), V and bias, with Q, K, V made from X + table."""
        d = self.sizes.num_hiddens
        X = self.input(scheme)
        q, k, v = (
            rearrange(X @ self.draw(i, d, d) * d**-0.5, "n (h d) -> 1 h n d", h=self.sizes.num_heads) for i in range(3)
        )
        positions = self.make(scheme)
        q, k = positions.rotate(q), positions.rotate(k)
        bias = positions.bias(q, self.sizes.num_tokens)
        return q, k, v, q.new_zeros(1, 1, 1, 1) if bias is None else bias

    def make(self, scheme: SchemeEntry) -> PositionScheme:
        """What the scheme does inside this layer, its parameters drawn from the seed."""
        return self._drawn(scheme, scheme.make(self.sizes))

    def input(self, scheme: SchemeEntry) -> Float[Tensor, "n d"]:
        """X + table: what the layer reads."""
        return self.X + self.input_table(scheme)

    @torch.no_grad()
    def input_table(self, scheme: SchemeEntry) -> Float[Tensor, "n d"]:
        """What the scheme adds to the input, 0 if nothing; learned positions are the table given, else random."""
        if scheme.make_input is None:
            return torch.zeros_like(self.X)
        layer = self._drawn(scheme, scheme.make_input(*self.X.shape))
        if self.table is not None and any(True for _ in layer.parameters()):
            return self.table
        added: Tensor = layer(torch.zeros_like(self.X)[None])[0]
        return added

    def draw(self, stream: int, *shape: int) -> Tensor:
        """Standard normal numbers, always the same for the same seed, stream and shape."""
        generator = torch.Generator().manual_seed(1000 * self.seed + stream)
        return torch.randn(*shape, generator=generator)

    def permuted(self, order: Int[Tensor, " n"]) -> "SharedLayer":
        """The same layer and positions, with the tokens in another order."""
        return replace(self, X=self.X[order])

    def one_word(self) -> "SharedLayer":
        """The first token at every position: all differences between scores come from positions."""
        return replace(self, X=self.X[:1].expand_as(self.X))

    def _drawn(self, scheme: SchemeEntry, module: Module) -> Module:
        """The module with its parameters drawn from this seed, whatever the state of torch's own generator."""
        for i, parameter in enumerate(module.parameters() if isinstance(module, nn.Module) else ()):
            drawn = scheme.std * self.draw(scheme.seed + 100 * i, *parameter.shape)
            parameter.requires_grad_(False).copy_(drawn)
        return module


def order_changes(scheme: SchemeEntry, layer: SharedLayer, order: Int[Tensor, " n"]) -> Float[Tensor, " n"]:
    """Largest entry of |f(P X) - P f(X)| for each token, in the new order.

    f is one attention layer, P the permutation that puts token order[i] at i. Near 0 where the layer is
    permutation-equivariant: it sees a set of tokens, not a sequence.
    """
    shuffled_first = layer.permuted(order).output(scheme)
    shuffled_last = layer.output(scheme)[order]
    return (shuffled_first - shuffled_last).abs().amax(dim=-1)


def offset_spread(scores: Float[Tensor, "*batch n n"]) -> float:
    """How much the scores of one offset differ: the largest max - min along a diagonal j - i = const.

    0 where every offset has one score, at any place in the sequence.
    """
    return float(max((d.amax(-1) - d.amin(-1)).max() for d in _diagonals(scores)))


def is_striped(scores: Float[np.ndarray, "n n"]) -> bool:
    """Whether every offset has one score, up to what float32 loses in sums of a few hundred terms."""
    return offset_spread(torch.from_numpy(scores)) <= 1e-5 * (1 + float(np.abs(scores).max()))


def offset_share(similarity: Float[Tensor, "n n"]) -> float:
    """1 - sum (s_ij - m_(j-i))^2 / sum (s_ij - m)^2: the share of a map's variance that the offset alone explains.

    m_o is the mean of the diagonal j - i = o and m that of the map; 1 for a map that is constant on each diagonal.
    """
    n = similarity.shape[0]
    explained = torch.empty_like(similarity)
    for offset in range(-n + 1, n):
        mean = similarity.diagonal(offset).mean()
        explained.diagonal(offset).fill_(mean)
    return float(1 - (similarity - explained).square().sum() / (similarity - similarity.mean()).square().sum())


def table_offset_share(table: Float[Tensor, "n d"]) -> float:
    """`offset_share` of P P^T; 1 for a single position."""
    return offset_share(table @ table.T) if len(table) > 1 else 1.0


def _diagonals(scores: Float[Tensor, "*batch n n"]) -> list[Float[Tensor, "*batch length"]]:
    n = scores.shape[-1]
    return [scores.diagonal(offset, dim1=-2, dim2=-1) for offset in range(-n + 1, n)]


_PATCH = 8  # pixels on a side


def picture_tokens(height: int, width: int, num_hiddens: int) -> Tokens:
    """The patches of picture(height, width), row-major, under one random projection (Dosovitskiy 2021, eq. 1)."""
    pixels = torch.from_numpy(picture(height, width))
    patches = rearrange(pixels, "(row p) (col q) -> (row col) (p q)", p=_PATCH, q=_PATCH)
    patches = (patches - pixels.mean()) / pixels.std()
    projection = torch.randn(_PATCH**2, num_hiddens, generator=torch.Generator().manual_seed(0)) / _PATCH
    labels = tuple(f"{row + 1},{column + 1}" for row in range(height) for column in range(width))
    return Tokens(labels, patches @ projection, height, width, height * width)


def picture(height: int, width: int) -> Float[np.ndarray, "rows columns"]:
    """A sun over waves, 0 to 1, of height x width patches of 8 x 8 pixels."""
    y, x = np.meshgrid(np.linspace(0, 1, _PATCH * height), np.linspace(0, 1, _PATCH * width), indexing="ij")
    sun = 1 / (1 + np.exp(40 * (np.hypot(x - 0.68, y - 0.32) - 0.2)))
    waves = 0.35 + 0.25 * np.sin(14 * np.pi * y**1.5 + 4 * np.sin(2 * np.pi * x))
    sky = 0.15 + 0.35 * y
    return np.clip(np.where(y > 0.62, waves, sky + 0.75 * sun), 0, 1).astype(np.float32)


class LearnedTable(NamedTuple):
    """The positions that a picture model has learned, without its class token, and its card."""

    card: ModelCard
    positions: Float[Tensor, "positions d"]


def shipped_position_tables(folder: Path | None = None) -> list[LearnedTable]:
    """The tables of all picture models that ship, without those that cannot be read: their pages report the error."""
    root, found = folder or shipped.CHECKPOINTS, []
    for card in shipped.available(root):
        try:
            with safe_open(root / card.name / "model.safetensors", framework="pt") as tensors:
                if "pos_embedding" in tensors.keys():  # noqa: SIM118  not a dict
                    found.append(LearnedTable(card, tensors.get_tensor("pos_embedding")[0, 1:].float()))
        except (OSError, SafetensorError):
            continue
    return found
