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
from viz_core.positional.alibi import alibi_bias
from viz_core.positional.learned import AbsolutePositionEmbedding1d
from viz_core.positional.relative import RelativePositionEmbedding1d
from viz_core.positional.relative_2d import RelativePositionEmbedding2d
from viz_core.positional.rotary import apply_rotary
from viz_core.positional.sinusoidal import sinusoidal_table
from viz_core.positional.t5 import T5RelativeBias
from viz_core.trace import attend, attention_weights

Queries = Float[Tensor, "1 heads n d"]
Module = TypeVar("Module", bound=nn.Module)


def _no_table(_setting: Setting) -> Tensor | float:
    return 0.0


def _no_turn(x: Queries, _setting: Setting) -> Queries:
    return x


def _no_bias(q: Queries, _setting: Setting) -> Tensor:
    return q.new_zeros(1, 1, 1, 1)


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
        table: what is added to the input; turn: what is done to queries and keys; bias: what is added
            to the scaled scores.
        blind: whether, at these sizes, it cannot tell the tokens in this order from the tokens as they are.
    """

    name: str
    enters: str
    extends: bool
    cost: Callable[[Sizes], Cost]
    table: Callable[[Setting], Tensor | float] = field(default=_no_table)
    turn: Callable[[Queries, Setting], Queries] = field(default=_no_turn)
    bias: Callable[[Queries, Setting], Tensor] = field(default=_no_bias)
    blind: Callable[[Sizes, Int[Tensor, "n"]], bool] = field(default=_never)

    @torch.no_grad()
    def scores(self, setting: Setting) -> Float[Tensor, "heads n n"]:
        """Scores before the softmax, scaled by 1 / sqrt(d_head)."""
        q, k, _, bias = self.project(setting)
        return (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5 + bias)[0]

    def position_scores(self, setting: Setting) -> Float[Tensor, "heads n n"]:
        """What positions add to the scores: those of this scheme minus those without positions."""
        return self.scores(setting) - BY_NAME["none"].scores(setting)

    @torch.no_grad()
    def weights(self, setting: Setting) -> Float[Tensor, "heads n n"]:
        """Attention weights; every row sums to 1."""
        q, k, _, bias = self.project(setting)
        return attention_weights(q, k, bias=bias)[0]

    @torch.no_grad()
    def output(self, setting: Setting) -> Float[Tensor, "n d"]:
        """f(X): one layer of self-attention, heads side by side."""
        q, k, v, bias = self.project(setting)
        return rearrange(attend(q, k, v, bias=bias), "1 heads n d -> n (heads d)")

    def project(self, setting: Setting) -> tuple[Queries, Queries, Queries, Tensor]:
        """Queries, keys, values and bias, with the positions in them."""
        d = setting.X.shape[1]
        positioned = setting.X + self.table(setting)
        q, k, v = (
            rearrange(positioned @ setting.draw(i, d, d) * d**-0.5, "n (h d) -> 1 h n d", h=setting.sizes.num_heads)
            for i in range(3)
        )
        return self.turn(q, setting), self.turn(k, setting), v, self.bias(q, setting)


def _sinusoidal(setting: Setting) -> Tensor:
    return sinusoidal_table(setting.sizes.num_tokens, setting.sizes.num_hiddens)


def learned_table(setting: Setting) -> Tensor:
    """The table given, else random numbers of the variance of sinusoids, 1/2."""
    if setting.table is not None:
        return setting.table
    return 0.5**0.5 * setting.draw(3, setting.sizes.num_tokens, setting.sizes.num_hiddens)


def _absolute(q: Queries, setting: Setting) -> Tensor:
    module = AbsolutePositionEmbedding1d(q.shape[2], q.shape[3])
    return _drawn(module, setting, 4)(q) * q.shape[3] ** -0.5


def _relative(q: Queries, setting: Setting) -> Tensor:
    module = RelativePositionEmbedding1d(q.shape[2], q.shape[3], setting.sizes.tables)
    return _drawn(module, setting, 5)(q) * q.shape[3] ** -0.5


def _shaw(q: Queries, setting: Setting) -> Tensor:
    sizes = setting.sizes
    module = RelativePositionEmbedding1d(q.shape[2], q.shape[3], sizes.tables, max_distance=sizes.max_distance)
    return _drawn(module, setting, 6)(q) * q.shape[3] ** -0.5


def relative_2d_module(setting: Setting) -> RelativePositionEmbedding2d:
    """The row and column tables of the 2-D scheme; two terms, together of variance 1."""
    sizes = setting.sizes
    module = RelativePositionEmbedding2d(sizes.height, sizes.width, sizes.head_dim, sizes.tables)
    return _drawn(module, setting, 7, std=0.5**0.5)


def _relative_2d(q: Queries, setting: Setting) -> Tensor:
    return relative_2d_module(setting)(q) * q.shape[3] ** -0.5


def _rotary(x: Queries, _setting: Setting) -> Queries:
    return apply_rotary(x, torch.arange(x.shape[2]))


def _alibi(q: Queries, _setting: Setting) -> Tensor:
    return alibi_bias(q.shape[1], q.shape[2], q.shape[2])[None]


def _t5(q: Queries, setting: Setting) -> Tensor:
    module = T5RelativeBias(q.shape[1], setting.sizes.num_buckets)
    return _drawn(module, setting, 8)(q.shape[2], q.shape[2])


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
    Scheme("absolute", "scores", False, costs.absolute, bias=_absolute),
    Scheme("relative", "scores", False, costs.relative, bias=_relative),
    # One vector for all offsets adds the same to every key, which the softmax cancels.
    Scheme("shaw", "scores", True, costs.shaw, bias=_shaw, blind=lambda sizes, _: sizes.max_distance == 0),
    Scheme("relative-2d", "scores", False, costs.relative_2d, bias=_relative_2d),
    Scheme("rotary", "rotation", True, costs.rotary, turn=_rotary),
    # Without a causal mask ALiBi knows distance and not direction: backwards is the same to it.
    Scheme("alibi", "scores", True, costs.alibi, bias=_alibi, blind=lambda _, order: _is_backwards(order)),
    Scheme("t5", "scores", True, costs.t5, bias=_t5),
)

BY_NAME = {scheme.name: scheme for scheme in SCHEMES}
