"""Sequences and patterns for the model of two heads, and what it does with them, computed once for all sessions."""

from __future__ import annotations

import random
from collections.abc import Sequence

import streamlit as st

from pages.learning import measured_run
from ui.compute.slots import cached
from viz_core.lessons.learning.two_heads import PERIOD, Outcome, Pattern, run_patterns
from viz_core.pretrained.checkpoint import load_weights
from viz_core.runtime.assets import reading
from viz_core.tasks import TASKS, TaskTransformer
from viz_core.tasks.film import TWO_HEADS
from viz_core.tasks.generating import LETTERS

COUNT = 2 * PERIOD - 1
"""Letters that the model reads; the last one is only predicted."""
OFF, TRAINED = "off", "trained"
AFTER = "after-occurrence"
NAMED = ("previous", "diagonal", "first", "uniform", AFTER)
"""Patterns with a name; the last one is `keys_after`."""


def sequence(seed: int) -> tuple[str, ...]:
    """Return different random letters, and the same letters again."""
    return tuple(random.Random(seed).sample(LETTERS, PERIOD)) * 2


def keys_after(letters: Sequence[str]) -> tuple[int, ...]:
    """Return, for each query, the key after the previous occurrence of its letter; -1 without one."""
    before = [max((j for j in range(i) if letters[j] == letters[i]), default=-2) for i in range(len(letters))]
    return tuple(j + 1 for j in before)


@cached()
def outcome(seed: int, *patterns: Pattern) -> Outcome:
    """Run the model on a sequence, with a pattern of each head."""
    letters = sequence(seed)
    keys = keys_after(letters[:COUNT])
    return run_patterns(shipped_model(), letters, [keys if what == AFTER else what for what in patterns])


@st.cache_resource(max_entries=1, show_spinner=False)
def shipped_model() -> TaskTransformer:
    """Return the model that ships; AssetError if its weights are missing or damaged."""
    model = TaskTransformer(len(TASKS[TWO_HEADS.task].tokens), TWO_HEADS.shape)
    with reading(path := measured_run.RECORDED / "two-heads.safetensors"):
        load_weights(model, path)
    return model.eval()


def score(yours: float, trained: float, without: float) -> float | None:
    """Return the share of the loss between switched off (0) and trained (1) that is saved; None where none can be."""
    return (without - yours) / (without - trained) if without > trained else None
