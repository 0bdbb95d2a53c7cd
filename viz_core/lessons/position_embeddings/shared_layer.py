"""The same tokens and the same attention layer under every position scheme of the register."""

from dataclasses import dataclass, replace
from typing import TypeVar

import torch
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn

from viz_core.positional.entry import SchemeEntry, SchemeSizes
from viz_core.positional.register import BY_NAME
from viz_core.positional.scheme import PositionScheme
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
