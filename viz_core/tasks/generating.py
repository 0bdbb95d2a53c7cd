"""Tasks with a simple rule, with exact and unlimited examples.

Every example is a row of tokens, some of which the rule decides: these alone are targets. All random numbers come from
the given generator, so the same generator gives the same examples.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int
from torch import Generator, Tensor

Rows = Int[Tensor, "count n"]

DIGITS = tuple("0123456789")
LETTERS = tuple("abcdefghijklmnopqrstuvwxyz")
MODULUS = 59
"""A prime, as in Nanda 2023, where 113 takes far longer to learn."""
TRAINED_SHARE = 0.5
"""Share of all pairs in the training set of modular addition; the rest is the test set (0.3 in Nanda 2023)."""


class Examples(NamedTuple):
    """Rows of token ids, and a mask of the tokens that the rule decides."""

    tokens: Int[Tensor, "count n"]
    decided: Bool[Tensor, "count n"]


@dataclass(frozen=True)
class Task:
    """One rule.

    Attributes:
        name: as in the URL and in files.
        tokens: the token of each id.
        shortest, longest: the range of lengths.
        in_order: whether each token is decided by those before it, so that the model must be causal.
        make: (generator, count, length, held_out) -> examples. Held-out examples are never trained on; with unlimited
            examples there are none.
        finite: whether there are so few examples that they can be memorised.
    """

    name: str
    tokens: tuple[str, ...]
    shortest: int
    make: Callable[[Generator, int, int, bool], Examples]
    in_order: bool = False
    finite: bool = False
    longest: int = 128

    def draw(self, generator: Generator, count: int, length: int, held_out: bool = False) -> Examples:
        """Return examples of this length: letters to copy, pairs to search, digits to add."""
        if count < 1 or not self.shortest <= length <= self.longest:
            lengths = f"{self.shortest} to {self.longest}"
            raise ValueError(f"{self.name}: expected a length from {lengths}, got {count} of length {length}")
        return self.make(generator, count, length, held_out)

    def ids(self, *tokens: str) -> list[int]:
        """The ids of these tokens."""
        return [self.tokens.index(token) for token in tokens]


def _draw(generator: Generator, count: int, length: int, high: int) -> Rows:
    return torch.randint(high, (count, length), generator=generator)


def _answered(prompt: Int[Tensor, "count prompt"], sign: int, answer: Int[Tensor, "count answered"]) -> Examples:
    """prompt = answer, of which the answer is decided."""
    middle = torch.full((len(prompt), 1), sign)
    tokens = torch.cat([prompt, middle, answer], dim=1)
    return Examples(tokens, torch.arange(tokens.shape[1]).expand_as(tokens) > prompt.shape[1])


def _of_letters(rule: Callable[[Rows], Rows]) -> Callable[[Generator, int, int, bool], Examples]:
    """letters = the same letters by a rule."""

    def make(generator: Generator, count: int, length: int, _held_out: bool) -> Examples:
        prompt = _draw(generator, count, length, len(LETTERS))
        return _answered(prompt, len(LETTERS), rule(prompt))

    return make


def _repeat(generator: Generator, count: int, length: int, _held_out: bool) -> Examples:
    """A random sequence, repeated up to twice its length; the period differs from row to row.

    With one period for all rows, a layer that attends a fixed number of tokens back would solve the task (Olsson 2022
    repeats a random sequence of 25 tokens).
    """
    runs = _draw(generator, count, length, len(LETTERS))
    periods = torch.randint((length + 1) // 2, length + 1, (count, 1), generator=generator)
    places = torch.arange(2 * length).expand(count, -1)
    return Examples(runs.gather(1, places % periods), places >= periods)


def _retrieve(generator: Generator, count: int, length: int, _held_out: bool) -> Examples:
    """Pairs of a letter and a digit, no letter twice; then one of the letters, whose digit is the target."""
    keys = torch.rand(count, len(LETTERS), generator=generator).argsort(dim=1)[:, :length]
    values = _draw(generator, count, length, len(DIGITS)) + len(LETTERS)
    pairs = torch.stack([keys, values], dim=2).flatten(1)
    queried = torch.randint(length, (count, 1), generator=generator)
    prompt = torch.cat([pairs, keys.gather(1, queried)], dim=1)
    return _answered(prompt, len(LETTERS) + len(DIGITS), values.gather(1, queried))


def _add(generator: Generator, count: int, length: int, _held_out: bool) -> Examples:
    """Two numbers of so many digits and their sum, least significant digit first: carries go forward."""
    one, other = (_draw(generator, count, length, len(DIGITS)) for _ in range(2))
    carry = torch.zeros(count, dtype=torch.long)
    columns = []
    for place in range(length):
        column = one[:, place] + other[:, place] + carry
        columns.append(column % 10)
        carry = column // 10
    plus = torch.full((count, 1), len(DIGITS))
    return _answered(torch.cat([one, plus, other], dim=1), len(DIGITS) + 1, torch.stack([*columns, carry], dim=1))


def _brackets(generator: Generator, count: int, length: int, _held_out: bool) -> Examples:
    """Rows of brackets, and whether they are balanced: half of them are, each as likely as any.

    By the cycle lemma: of the turns of n openings and n + 1 closings exactly one is a balanced row and one more closing
    (Dvoretzky & Motzkin 1947).
    """
    opened = torch.rand(count, 2 * length + 1, generator=generator).argsort(dim=1) < length
    lowest = _depth(opened).argmin(dim=1, keepdim=True)  # the first time: from there on it never falls as low
    balanced = opened.gather(1, (torch.arange(2 * length) + lowest + 1) % (2 * length + 1))
    mixed = torch.rand(count, 2 * length, generator=generator).argsort(dim=1) < length
    by_chance = _depth(mixed).amin(dim=1, keepdim=True) >= 0
    broken = torch.where(by_chance, mixed.roll(1, dims=1), mixed)  # its last closing first
    good = torch.rand(count, 1, generator=generator) < 0.5
    rows = torch.where(good, balanced, broken)
    return _answered((~rows).long(), 2, torch.where(good, 3, 4))


def _depth(opened: Bool[Tensor, "count n"]) -> Int[Tensor, "count n"]:
    """Return the number of open brackets after each."""
    return torch.where(opened, 1, -1).cumsum(dim=1)


def _modular(generator: Generator, count: int, _length: int, held_out: bool) -> Examples:
    """a, b and (a + b) mod p, for the pairs that are trained on or for the others."""
    pairs = modular_pairs(held_out)
    prompt = pairs[torch.randint(len(pairs), (count,), generator=generator)]
    return _answered(prompt, MODULUS, prompt.sum(dim=1, keepdim=True) % MODULUS)


def modular_pairs(held_out: bool) -> Int[Tensor, "pairs 2"]:
    """All a and b that are trained on in modular addition, or all others; always the same."""
    trained = int(TRAINED_SHARE * MODULUS**2)
    numbers = _pairs()[trained:] if held_out else _pairs()[:trained]
    return torch.stack([numbers // MODULUS, numbers % MODULUS], dim=1)


@lru_cache(maxsize=1)
def _pairs() -> Int[Tensor, " pairs"]:
    """All pairs as a p + b, in an order that is always the same."""
    return torch.randperm(MODULUS**2, generator=torch.Generator().manual_seed(0))


_WORDS = (*LETTERS, "=")
TASKS = {
    task.name: task
    for task in (
        Task("copy", _WORDS, 1, _of_letters(lambda letters: letters)),
        Task("reverse", _WORDS, 1, _of_letters(lambda letters: letters.flip(1))),
        Task("sort", _WORDS, 1, _of_letters(lambda letters: letters.sort(dim=1).values)),
        Task("repeat", LETTERS, 2, _repeat, in_order=True),
        Task("look-up", (*LETTERS, *DIGITS, "="), 1, _retrieve, longest=len(LETTERS)),
        Task("add", (*DIGITS, "+", "="), 1, _add),
        Task("brackets", ("(", ")", "=", "yes", "no"), 1, _brackets),
        Task("modular-addition", (*map(str, range(MODULUS)), "="), 1, _modular, finite=True),
    )
}
"""Each task by its name."""
