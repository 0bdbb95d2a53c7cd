"""A stream of key-value pairs: each token writes under a letter and asks for one, and what a state returns."""

from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from viz_core.attention.linear import LinearOperator, gated_delta_rule, retention

RuleName = Literal["sum", "decay", "delta"]
RULES: tuple[RuleName, ...] = ("sum", "decay", "delta")
LETTERS = "ABCDEF"
TOKENS, WIDTH, VALUE_WIDTH = 16, 8, 6


class Stream(NamedTuple):
    """Tokens that write and ask."""

    written: tuple[int, ...]  # the letter each token writes a value under
    wanted: tuple[int, ...]  # the letter each token asks for, written by it or before it
    keys: Float[Tensor, "letters d"]  # of the letters, of length 1: (letters, d)
    values: Float[Tensor, "n v"]  # of the tokens: (n, v)

    def operator(self, rule: RuleName, decay: float, strength: float = 1.0) -> LinearOperator:
        """Return the layer of one head that follows a rule; `decay` serves "decay" and "delta"."""
        queries, keys = (self.keys[list(letters)][None, None] for letters in (self.wanted, self.written))
        if rule == "sum":
            return LinearOperator(queries, keys)
        if rule == "decay":
            return retention(queries, keys, torch.tensor([decay], dtype=keys.dtype))
        gates = torch.ones_like(keys[..., 0])
        return gated_delta_rule(queries, keys, torch.tensor(decay).log() * gates, strength * gates)

    def read(self, state: Float[Tensor, "d v"], letter: int) -> Float[Tensor, " v"]:
        """Return what a state returns for a letter."""
        return self.keys[letter] @ state

    def last_written(self, letter: int, time: int) -> int | None:
        """Return the last token up to `time` that wrote under a letter; None if there is none."""
        return max((t for t in range(time + 1) if self.written[t] == letter), default=None)


def draw_stream(seed: int, orthogonal: bool = False) -> Stream:
    """Return a random stream in float64.

    Args:
        orthogonal: whether the keys of different letters are orthogonal.
    """
    draw = torch.Generator().manual_seed(seed)
    written = torch.randint(len(LETTERS), (TOKENS,), generator=draw).tolist()
    wanted = [written[int(torch.randint(t + 1, (1,), generator=draw))] for t in range(TOKENS)]
    keys = torch.randn(len(LETTERS), WIDTH, generator=draw, dtype=torch.float64)
    keys = torch.linalg.qr(keys.T)[0].T if orthogonal else F.normalize(keys, dim=-1)
    values = torch.randn(TOKENS, VALUE_WIDTH, generator=draw, dtype=torch.float64)
    return Stream(tuple(written), tuple(wanted), keys, values)


class Returned(NamedTuple):
    """The state of a rule after a token, without decay, and what it returns."""

    state: Float[Tensor, "d v"]
    # by letter written so far, the distance of what the state returns from the letter's last value
    errors: dict[str, float]


def returned(stream: Stream, rule: RuleName, time: int) -> Returned:
    """Return the state after the token at `time`, counted from 0, and its errors."""
    state = stream.operator(rule, decay=1.0).states(stream.values[None, None])[0, 0, time]
    errors = {}
    for letter, name in enumerate(LETTERS):
        last = stream.last_written(letter, time)
        if last is not None:
            errors[name] = float((stream.read(state, letter) - stream.values[last]).norm())
    return Returned(state, errors)
