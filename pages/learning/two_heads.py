"""A trained model of two layers with one head each, run with patterns given for its heads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import streamlit as st
import torch
import torch.nn.functional as F
from jaxtyping import Float
from torch import Generator, Tensor

from pages.learning import measured_run
from ui.compute.slots import cached
from viz_core.pretrained.checkpoint import load_weights
from viz_core.runtime.assets import reading
from viz_core.tasks import TASKS, TaskTransformer
from viz_core.tasks.film import TWO_HEADS
from viz_core.trace import Edit, intervene, off, pattern, record, uniform

PERIOD = 6
"""Letters of the sequence that is repeated once; no letter is twice among them."""
COUNT = 2 * PERIOD - 1
"""Letters that the model reads; the last one of the repetition is only predicted."""
OFF, TRAINED = "off", "trained"
NAMED = ("previous", "diagonal", "first", "uniform", "after-occurrence")
"""Patterns with a name; "after-occurrence": the token that followed the previous occurrence of the query's token."""
Pattern: TypeAlias = str | tuple[int, ...]
"""OFF, TRAINED, a name, or the key of each query, -1 for none."""

_TASK = TASKS[TWO_HEADS.task]
_SITES = ("decoder.0.self", "decoder.1.self")


@dataclass(frozen=True, eq=False)
class Outcome:
    """What the model does with the given patterns.

    Attributes:
        loss: mean of -log p, in nats, of the letters of the repetition but its first, which nobody can know.
        predicted: the likeliest of these letters.
        right: the number of them that are right.
        maps: weights of the head of each layer; zeros where it is switched off.
    """

    loss: float
    predicted: tuple[str, ...]
    right: int
    maps: Float[Tensor, "layers n n"]


def sequence(seed: int) -> tuple[str, ...]:
    """Return different random letters, and the same letters again."""
    order = torch.randperm(len(_TASK.tokens), generator=Generator().manual_seed(seed))[:PERIOD]
    return tuple(_TASK.tokens[token] for token in order.tolist()) * 2


def keys_after(letters: Sequence[str]) -> tuple[int, ...]:
    """Return, for each query, the key after the previous occurrence of its letter; -1 without one."""
    last: dict[str, int] = {}
    keys = []
    for query, letter in enumerate(letters):
        keys.append(last.get(letter, -2) + 1)
        last[letter] = query
    return tuple(keys)


def weights_of(keys: Sequence[int]) -> Float[Tensor, "n n"]:
    """Return weights 1 for the key of each query; a row of zeros for -1."""
    chosen = torch.tensor(keys)
    return F.one_hot(chosen.clamp(min=0), len(keys)) * (chosen >= 0).float()[:, None]


@cached()
def outcome(seed: int, first: Pattern, second: Pattern) -> Outcome:
    """Run the model on a sequence, with these patterns for the heads of its two layers."""
    letters = sequence(seed)
    ids = torch.tensor([_TASK.ids(*letters)])
    edits = {site: _edit(what, letters[:-1]) for site, what in zip(_SITES, (first, second), strict=True)}
    with intervene({site: edit for site, edit in edits.items() if edit}), record() as trace, torch.no_grad():
        scores = _model()(ids[:, :-1])[0, PERIOD:]
    wanted = ids[0, PERIOD + 1 :]
    best = scores.argmax(dim=1)
    return Outcome(
        float(F.cross_entropy(scores, wanted)),
        tuple(_TASK.tokens[token] for token in best.tolist()),
        int((best == wanted).sum()),
        torch.stack([trace[site].weights()[0, 0] for site in _SITES]),
    )


def score(yours: float, trained: float, without: float) -> float | None:
    """Return the share of the loss between switched off (0) and trained (1) that is saved; None where none can be."""
    return (without - yours) / (without - trained) if without > trained else None


def _edit(what: Pattern, letters: Sequence[str]) -> Edit | None:
    if isinstance(what, tuple):
        return pattern(0, weights_of(what))
    if what == "after-occurrence":
        return _edit(keys_after(letters), letters)
    if what in (TRAINED, OFF):
        return off(0) if what == OFF else None
    return uniform(0) if what == "uniform" else pattern(0, what)


@st.cache_resource(max_entries=1, show_spinner=False)
def _model() -> TaskTransformer:
    """Return the model that ships.

    Raises:
        AssetError: if its weights are missing or damaged.
    """
    model = TaskTransformer(len(_TASK.tokens), TWO_HEADS.shape)
    path = measured_run.RECORDED / "two-heads.safetensors"
    with reading(path):
        load_weights(model, path)
    return model.eval()
