"""Linear attention three ways on a stream of key-value pairs, its costs, and published models that have it."""

from dataclasses import replace
from importlib import import_module
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Tensor

from viz_core.attention.linear import LinearOperator, gated_delta_rule, retention, retention_decay

CHUNK = 4


class Forms(NamedTuple):
    """The same layer as a matrix and as a state."""

    map: Float[Tensor, "n n"]
    states: Float[Tensor, "n d v"]
    outputs: Float[Tensor, "n v"]
    map_error: float
    chunk_error: float
    later_weight: float


def all_forms(operator: LinearOperator, values: Float[Tensor, "n v"], broken: bool = False) -> Forms:
    """Return every form of a layer of one head, and how far they are apart, relative to the outputs' norm.

    If broken, the map leaves out the removal, which the recurrence keeps: b v in place of b (v - what was returned).
    """
    all_values = values[None, None]
    weights = (replace(operator, erases=False) if broken else operator).map()
    states, outputs = operator.states(all_values), operator.recurrent(all_values)
    whole = relative_error(weights @ all_values, outputs)
    chunks = relative_error(operator.chunked(all_values, CHUNK), outputs)
    return Forms(weights[0, 0], states[0, 0], outputs[0, 0], whole, chunks, float(weights.triu(1).abs().max()))


def relative_error(found: Tensor, expected: Tensor) -> float:
    """Norm of the difference divided by the norm of what is expected."""
    return float((found - expected).norm() / expected.norm())


def decay_by_age(num_heads: int, num_ages: int) -> Float[Tensor, "heads ages"]:
    """Return g^age of each head's decay g, for ages 0, 1, ... (RetNet: Sun 2023, equation 8)."""
    return retention_decay(num_heads).double()[:, None] ** torch.arange(num_ages)


def map_error(num_heads: int, num_tokens: int = 64, width: int = 8) -> float:
    """Largest difference of a retention map of random queries and keys from g^(t - s) q_t . k_s."""
    draw = torch.Generator().manual_seed(0)
    queries, keys = (
        torch.randn(1, num_heads, num_tokens, width, generator=draw, dtype=torch.float64) for _ in range(2)
    )
    places = torch.arange(num_tokens)
    ages = (places[:, None] - places).clamp_min(0)
    expected = (queries @ keys.mT * decay_by_age(num_heads, num_tokens)[:, ages]).tril()
    return float((retention(queries, keys, retention_decay(num_heads).double()).map() - expected).abs().max())


class HeadCost(NamedTuple):
    """Multiplications for all tokens, and numbers kept for the next, of one causal head."""

    softmax: int
    linear: int
    cache: int
    state: int


def head_cost(num_tokens: int, width: int) -> HeadCost:
    """Return the costs of n tokens and width d (Katharopoulos 2020, section 3.2).

    softmax: n (n + 1) d, for each query with each key up to it, and with each value; linear: 2 n d^2, to write and to
    read the state. Kept: 2 n d keys and values, or a state of d^2.
    """
    return HeadCost(num_tokens * (num_tokens + 1) * width, 2 * num_tokens * width**2, 2 * num_tokens * width, width**2)


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
    """Return a random stream in float64, with orthogonal keys if wanted."""
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


CONFIGURATIONS = {
    "Mamba-2": ("mamba2", "Mamba2Config", "gated-decay"),
    "MiniMax": ("minimax", "MiniMaxConfig", "decay"),
    "Qwen3-Next": ("qwen3_next", "Qwen3NextConfig", "delta"),
    "Qwen3.5": ("qwen3_5", "Qwen3_5TextConfig", "delta"),
    "OLMo Hybrid": ("olmo_hybrid", "OlmoHybridConfig", "delta"),
}
"""By model: module and class in transformers, and its rule."""


class ModelLayers(NamedTuple):
    """Layers of a model, all together and those with linear attention."""

    model: str
    rule: str
    layers: int
    linear: int


def model_layers() -> tuple[ModelLayers, ...]:
    """Return the layers of every model of `CONFIGURATIONS`, counted in `layer_types` of its default configuration."""
    rows = []
    for model, (module, name, rule) in CONFIGURATIONS.items():
        configuration = import_module(f"transformers.models.{module}.configuration_{module}")
        types = list(getattr(configuration, name)().layer_types)
        rows.append(ModelLayers(model, rule, len(types), types.count("linear_attention")))
    return tuple(rows)
