"""Every position scheme in one register: the same tokens and the same attention layer under each of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import torch
from einops import rearrange
from jaxtyping import Float, Int
from torch import Tensor, nn

from viz_core.lessons.position_embeddings import costs
from viz_core.lessons.position_embeddings.costs import Cost
from viz_core.lessons.position_embeddings.setting import Setting, Sizes
from viz_core.positional.alibi import ALiBi
from viz_core.positional.learned import AbsolutePositionEmbedding1d
from viz_core.positional.relative import RelativePositionEmbedding1d
from viz_core.positional.relative_2d import RelativePositionEmbedding2d
from viz_core.positional.rotary import Rotary
from viz_core.positional.scheme import PositionScheme
from viz_core.positional.sinusoidal import sinusoidal_table
from viz_core.positional.t5 import T5RelativeBias
from viz_core.trace import attend, attention_weights

Queries = Float[Tensor, "1 heads n d"]
Module = TypeVar("Module", bound=nn.Module)


def _no_table(_setting: Setting) -> Tensor | float:
    return 0.0


def _nothing_inside(_setting: Setting) -> PositionScheme:
    return PositionScheme()


def _never(_sizes: Sizes, _order: Int[Tensor, "n"]) -> bool:
    return False


@dataclass(frozen=True)
class Scheme:
    """How positions enter attention: softmax(turn(Q) turn(K)^T / sqrt(d) + bias) V, with Q, K, V made from X + table.

    Args:
        name: one word or two, as in the register.
        enters: "nowhere", "input", "rotation" or "scores".
        extends: whether its scores are defined for sequences longer than those it was trained on.
        cost: numbers learned, stored and computed, by size.
        table: what is added to the input.
        inside: what positions do within the attention, turn and bias: one of the library's schemes, its tables drawn.
        blind: whether, at these sizes, it cannot tell the tokens in this order from the tokens as they are.
    """

    name: str
    enters: str
    extends: bool
    cost: Callable[[Sizes], Cost]
    table: Callable[[Setting], Tensor | float] = field(default=_no_table)
    inside: Callable[[Setting], PositionScheme] = field(default=_nothing_inside)
    blind: Callable[[Sizes, Int[Tensor, "n"]], bool] = field(default=_never)

    @torch.no_grad()
    def scores(self, setting: Setting) -> Float[Tensor, "heads n n"]:
        """turn(Q) turn(K)^T / sqrt(d) + bias: what the softmax is given, d the width of a head."""
        q, k, _, bias = self.project(setting)
        return (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5 + bias)[0]

    def position_scores(self, setting: Setting) -> Float[Tensor, "heads n n"]:
        """What positions add to the scores: those of this scheme minus those without positions."""
        return self.scores(setting) - BY_NAME["none"].scores(setting)

    @torch.no_grad()
    def weights(self, setting: Setting) -> Float[Tensor, "heads n n"]:
        """softmax(turn(Q) turn(K)^T / sqrt(d) + bias); every row sums to 1."""
        q, k, _, bias = self.project(setting)
        return attention_weights(q, k, bias=bias)[0]

    @torch.no_grad()
    def output(self, setting: Setting) -> Float[Tensor, "n d"]:
        """f(X) = softmax(turn(Q) turn(K)^T / sqrt(d) + bias) V, heads side by side."""
        q, k, v, bias = self.project(setting)
        return rearrange(attend(q, k, v, bias=bias), "1 heads n d -> n (heads d)")

    def project(self, setting: Setting) -> tuple[Queries, Queries, Queries, Tensor]:
        """turn(Q), turn(K), V and bias, with Q, K, V made from X + table."""
        d = setting.X.shape[1]
        positioned = setting.X + self.table(setting)
        q, k, v = (
            rearrange(positioned @ setting.draw(i, d, d) * d**-0.5, "n (h d) -> 1 h n d", h=setting.sizes.num_heads)
            for i in range(3)
        )
        inside = self.inside(setting)
        q, k = inside.rotate(q), inside.rotate(k)
        bias = inside.bias(q, setting.sizes.num_tokens)
        return q, k, v, q.new_zeros(1, 1, 1, 1) if bias is None else bias


def _sinusoidal(setting: Setting) -> Tensor:
    return sinusoidal_table(setting.sizes.num_tokens, setting.sizes.num_hiddens)


def learned_table(setting: Setting) -> Tensor:
    """The table given, else random numbers of the variance of sinusoids, 1/2."""
    if setting.table is not None:
        return setting.table
    return 0.5**0.5 * setting.draw(3, setting.sizes.num_tokens, setting.sizes.num_hiddens)


def _absolute(setting: Setting) -> AbsolutePositionEmbedding1d:
    sizes = setting.sizes
    return _drawn(AbsolutePositionEmbedding1d(sizes.num_tokens, sizes.head_dim), setting, 4)


def _relative(setting: Setting) -> RelativePositionEmbedding1d:
    sizes = setting.sizes
    return _drawn(RelativePositionEmbedding1d(sizes.num_tokens, sizes.head_dim, sizes.tables), setting, 5)


def _shaw(setting: Setting) -> RelativePositionEmbedding1d:
    sizes = setting.sizes
    module = RelativePositionEmbedding1d(
        sizes.num_tokens, sizes.head_dim, sizes.tables, max_distance=sizes.max_distance
    )
    return _drawn(module, setting, 6)


def relative_2d_module(setting: Setting) -> RelativePositionEmbedding2d:
    """The row and column tables of the 2-D scheme; two terms, together of variance 1."""
    sizes = setting.sizes
    module = RelativePositionEmbedding2d(sizes.height, sizes.width, sizes.head_dim, sizes.tables)
    return _drawn(module, setting, 7, std=0.5**0.5)


def _t5(setting: Setting) -> T5RelativeBias:
    return _drawn(T5RelativeBias(setting.sizes.num_heads, setting.sizes.num_buckets), setting, 8)


def _is_backwards(order: Int[Tensor, "n"]) -> bool:
    return torch.equal(order, torch.arange(len(order)).flip(0))


def _drawn(module: Module, setting: Setting, what: int, std: float = 1.0) -> Module:
    """The module with its tables drawn from the setting's seed, whatever torch's own generator holds."""
    for i, parameter in enumerate(module.parameters()):
        parameter.requires_grad_(False).copy_(std * setting.draw(what + 100 * i, *parameter.shape))
    return module


SCHEMES = (
    Scheme("none", "nowhere", True, costs.none, blind=lambda _sizes, _order: True),
    Scheme("sinusoidal", "input", True, costs.sinusoidal, table=_sinusoidal),
    Scheme("learned", "input", False, costs.learned, table=learned_table),
    Scheme("absolute", "scores", False, costs.absolute, inside=_absolute),
    Scheme("relative", "scores", False, costs.relative, inside=_relative),
    # One vector for all offsets adds the same to every key, which the softmax cancels.
    Scheme("shaw", "scores", True, costs.shaw, inside=_shaw, blind=lambda sizes, _: sizes.max_distance == 0),
    Scheme("relative-2d", "scores", False, costs.relative_2d, inside=relative_2d_module),
    Scheme("rotary", "rotation", True, costs.rotary, inside=lambda _: Rotary()),
    # Without a causal mask ALiBi knows distance and not direction: backwards is the same to it.
    Scheme("alibi", "scores", True, costs.alibi, inside=lambda _: ALiBi(), blind=lambda _, order: _is_backwards(order)),
    Scheme("t5", "scores", True, costs.t5, inside=_t5),
)

BY_NAME = {scheme.name: scheme for scheme in SCHEMES}
