"""The recorded runs of the learning chapter and their scores; `python -m recipes learning` records them."""

from collections.abc import Sequence
from dataclasses import replace

from viz_core.tasks.model import Shape
from viz_core.tasks.run import Plan, TaskRun

SEEDS = (0, 1, 2)
LENGTHS = tuple(range(2, 61, 2))
"""Lengths tested at; up to 20 are trained on."""
EXAMPLES = 64
"""Examples of each length."""

_REPEAT = Plan("repeat", Shape(2), steps=400, shortest=3, longest=10, learning_rate=5e-3, every=10)
_REVERSE = Plan("reverse", Shape(2, causal=False), steps=800, shortest=2, longest=8, learning_rate=5e-3, every=20)
FILMS = {
    "repeat-two-layers": _REPEAT,
    "repeat-one-layer": replace(_REPEAT, shape=Shape(1)),
    "reverse-sinusoidal": replace(_REVERSE, shape=Shape(2, positions="sinusoidal", causal=False)),
    "reverse-none-encoder": replace(_REVERSE, shape=Shape(2, positions="none", causal=False)),
    "reverse-none-decoder": replace(_REVERSE, shape=Shape(2, positions="none")),
    "modular-addition": Plan(
        "modular-addition",
        Shape(1, positions="learned"),
        steps=2500,
        batch_size=512,
        learning_rate=3e-3,
        weight_decay=2.0,
        every=50,
    ),
}
"""Each recorded run by its name; its file is NAME-SEED.npz."""
EXTRAPOLATION = Plan(
    "repeat", Shape(2), steps=1200, shortest=2, longest=20, batch_size=32, learning_rate=5e-3, every=1200
)
"""The run of every position scheme, with lengths up to 20."""


def accuracy_by_length(run: TaskRun, lengths: Sequence[int] = LENGTHS) -> list[float]:
    """Return the accuracy on decided tokens at each length."""
    return [round(run.accuracy(length, EXAMPLES), 4) for length in lengths]
