"""Associative recall, trained: layers with a softmax and with a state look values up under their keys."""

from collections.abc import Iterator
from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Generator, Tensor, nn

from viz_core.attention.linear import LinearOperator
from viz_core.runtime.hooks import may_end
from viz_core.trace import attend

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
