"""Linear attention three ways, its costs, published models that have it, and associative recall, trained."""

from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn

from viz_core.attention.linear import LinearOperator, gated_delta_rule, retention, retention_decay
from viz_core.runtime.hooks import may_end
from viz_core.trace import attend

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


def draw_numbers(seed: int) -> Stream:
    """Return the tokens of `draw_stream`, each of which writes a number from 1 to 9; the keys are unit vectors.

    So the state has one number for each letter.
    """
    draw = torch.Generator().manual_seed(seed + 1)  # not the draws that choose the letters
    numbers = torch.randint(1, 10, (TOKENS, 1), generator=draw).double()
    return draw_stream(seed)._replace(keys=torch.eye(len(LETTERS), dtype=torch.float64), values=numbers)


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


def model_layers(_no_model: None = None) -> tuple[ModelLayers, ...]:
    """Return the layers of every model of `CONFIGURATIONS`, counted in `layer_types` of its default configuration."""
    rows = []
    for model, (module, name, rule) in CONFIGURATIONS.items():
        configuration = import_module(f"transformers.models.{module}.configuration_{module}")
        types = list(getattr(configuration, name)().layer_types)
        rows.append(ModelLayers(model, rule, len(types), types.count("linear_attention")))
    return tuple(rows)


RecallRule = Literal["softmax", "delta", "sum"]
RECALL_RULES: tuple[RecallRule, ...] = ("softmax", "delta", "sum")
WIDTHS = (4, 8, 16, 32)
PAIRS = (2, 4, 8, 16, 24, 32, 48)
NUM_KEYS, NUM_VALUES = 64, 16
CHANCE = 1 / NUM_VALUES
_BATCH, _RATE, _QUESTIONS, _TESTS, _CHUNK = 32, 0.02, 1024, 8, 48
_SPLIT = 8  # the first pair of a sequence is one of every 8 in held-out sequences, one of the others in training


class Sequences(NamedTuple):
    """Pairs of a key and a value, in order; then every key is a query, and its last value is the answer."""

    keys: Int[Tensor, "batch n"]
    values: Int[Tensor, "batch n"]
    queried: Int[Tensor, "batch pairs"]
    answers: Int[Tensor, "batch pairs"]


def draw_sequences(generator: Generator, count: int, pairs: int, writes: int, held_out: bool) -> Sequences:
    """Return sequences of so many distinct keys, each written `writes` times with a random value.

    No held-out sequence can be drawn for training: key + value of the first pair is a multiple of 8 in these alone.
    """
    queried = torch.rand(count, NUM_KEYS, generator=generator).argsort(dim=1)[:, :pairs]
    values = torch.randint(NUM_VALUES, (count, pairs * writes), generator=generator)
    rest = torch.zeros(count).long() if held_out else torch.randint(1, _SPLIT, (count,), generator=generator)
    values[:, 0] = (values[:, 0] // _SPLIT * _SPLIT + rest - queried[:, 0]) % NUM_VALUES
    return Sequences(queried.repeat(1, writes), values, queried, values[:, -pairs:])


class RecallLayer(nn.Module):
    """One head of width d that learns to recall: learned keys and values, a norm, and scores of all values.

    A key's vector k has length 1 and is the query that asks for it. The output is rms_norm(o) W, with o from

    - softmax: softmax over pairs s of (c q . k_s + m s), with learned c > 0 and m > 0, so that the last value of a key
      can win (a learned slope of ALiBi; Press 2022), times the values;
    - sum: the state S = sum_s k_s v_s^T, of d x d numbers, read by q;
    - delta: the same with S <- S + b k_s (v_s - S^T k_s)^T and a learned b from 0 to 1 (Schlag 2021).
    """

    def __init__(self, rule: RecallRule, width: int, generator: Generator) -> None:
        super().__init__()
        self.rule = rule
        self.keys = nn.Parameter(torch.randn(NUM_KEYS, width, generator=generator))
        self.values = nn.Parameter(torch.randn(NUM_VALUES, width, generator=generator))
        self.head = nn.Parameter(torch.randn(width, NUM_VALUES, generator=generator) / width**0.5)
        self.log_scale, self.log_slope = nn.Parameter(torch.tensor(3.0)), nn.Parameter(torch.tensor(-3.0))
        self.strength_logit = nn.Parameter(torch.tensor(0.0))

    @property
    def strength(self) -> Tensor:
        """The delta rule's b."""
        return self.strength_logit.sigmoid()

    def forward(
        self, keys: Int[Tensor, "batch n"], values: Int[Tensor, "batch n"], queried: Int[Tensor, "batch pairs"]
    ) -> Float[Tensor, "batch pairs values"]:
        """Return the scores of all values for each query."""
        unit = F.normalize(self.keys, dim=-1)
        k, q, v = unit[keys][:, None], unit[queried][:, None], self.values[values][:, None]
        if self.rule == "softmax":
            recent = (self.log_slope.exp() * torch.arange(k.shape[2])).expand(1, 1, q.shape[2], -1)
            outputs = attend(self.log_scale.exp() * q, k, v, bias=recent, scale=1.0)
        else:  # the tokens that ask come after the pairs, and write nothing
            both, erases = torch.cat([k, q], dim=2), self.rule == "delta"
            written = self.strength if erases else torch.ones(())
            strength = F.pad(written.expand(k.shape[:3]), (0, q.shape[2]))
            operator = LinearOperator(both, both, None, strength, erases)
            outputs = operator.chunked(F.pad(v, (0, 0, 0, q.shape[2])), _CHUNK)[:, :, k.shape[2] :]
        return F.rms_norm(outputs[:, 0], outputs.shape[-1:]) @ self.head


class RecallPlan(NamedTuple):
    """What is trained."""

    steps: int = 200  # number of updates; the learning rate falls to 0 by then
    writes: int = 1  # how often each key is written, each time with another value
    seed: int = 0  # of first weights and of all sequences


class RecallRun:
    """Layers of every rule and width, trained on the same sequences, of every number of pairs in turn at random.

    Weights and sequences depend on the plan alone: two runs of one plan on one machine are the same, bit for bit.

    Attributes:
        tests: by number of updates, the accuracy on about 1,024 questions of held-out sequences for each rule, width
            and number of pairs; chance is 1/16.
    """

    def __init__(self, plan: RecallPlan) -> None:
        self.plan = plan
        start = self._generator(0, 0)
        self.layers = {(rule, width): RecallLayer(rule, width, start) for rule in RECALL_RULES for width in WIDTHS}
        weights = [weight for layer in self.layers.values() for weight in layer.parameters()]
        self.optimizer = torch.optim.Adam(weights, betas=(0.9, 0.98))
        self.step = 0
        self.tests: dict[int, Float[Tensor, "rules widths pairs"]] = {}

    @property
    def finished(self) -> bool:
        """Whether all updates are done."""
        return self.step >= self.plan.steps

    def advance(self, steps: int | None = None) -> Iterator[float]:
        """Train for a number of updates, or to the end; yield the mean loss of all layers in nats after each."""
        end = self.plan.steps if steps is None else min(self.plan.steps, self.step + steps)
        while self.step < end:
            may_end()
            yield self._update()

    def _update(self) -> float:
        if not self.tests:
            self.tests[0] = self._test()
        generator = self._generator(1, self.step)
        pairs = PAIRS[int(torch.randint(len(PAIRS), (), generator=generator))]
        *inputs, answers = draw_sequences(generator, _BATCH, pairs, self.plan.writes, held_out=False)
        losses = [F.cross_entropy(layer(*inputs).flatten(0, 1), answers.flatten()) for layer in self.layers.values()]
        for group in self.optimizer.param_groups:
            group["lr"] = _RATE * (1 - self.step / self.plan.steps)
        self.optimizer.zero_grad()
        torch.stack(losses).sum().backward()
        self.optimizer.step()
        self.step += 1
        if self.finished or self.step % max(1, self.plan.steps // _TESTS) == 0:
            self.tests[self.step] = self._test()
        return float(torch.stack(losses).detach().mean())

    @torch.no_grad()
    def _test(self) -> Float[Tensor, "rules widths pairs"]:
        found = []
        for pairs in PAIRS:
            generator = self._generator(2, pairs)
            *inputs, answers = draw_sequences(generator, _QUESTIONS // pairs, pairs, self.plan.writes, held_out=True)
            found.append(
                [float((layer(*inputs).argmax(-1) == answers).float().mean()) for layer in self.layers.values()]
            )
        return torch.tensor(found).T.reshape(len(RECALL_RULES), len(WIDTHS), len(PAIRS))

    def _generator(self, purpose: int, number: int) -> Generator:
        """Return the generator of the first weights, one update or one test."""
        return torch.Generator().manual_seed((self.plan.seed * 3 + purpose) * 1_000_003 + number)
