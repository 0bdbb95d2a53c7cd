"""Recorded runs: their plans and scores, and what is left of one to look at: its curve and every head's maps."""

import json
import zipfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

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
TWO_HEADS = replace(_REPEAT, shape=Shape(2, 1, feed_forward=False))
"""The run whose weights ship: attention only, one head a layer."""


def accuracy_by_length(run: TaskRun, lengths: Sequence[int] = LENGTHS) -> list[float]:
    """Return the accuracy on decided tokens at each length."""
    return [round(run.accuracy(length, EXAMPLES), 4) for length in lengths]


BLANK = "?"
"""What stands in a row for a token that is to be found out."""
_ARRAYS = ("loss", "accuracy", "shots", "held_out", "maps", "lengths", "spectra", "read", "wanted")


@dataclass(frozen=True, eq=False)
class Film:
    """A recorded run."""

    plan: Plan  # the task, the model and the training
    # loss, accuracy: of each update, on its batch: mean loss in nats, accuracy on decided tokens
    loss: Float[np.ndarray, " updates"]
    accuracy: Float[np.ndarray, " updates"]
    shots: tuple[int, ...]  # updates after which a snapshot was taken; the first is 0
    held_out: Float[np.ndarray, " shots"]  # accuracy on held-out examples, at each shot
    # of the probe, at each shot; rows sum to 1 up to the rounding of float16
    maps: Float[np.ndarray, "shots layers heads n n"]
    # |W_o^h v_j| of each key of the probe, at each shot: the norm of its contribution at weight 1
    lengths: Float[np.ndarray, "shots layers heads n"]
    # of the embedding at each shot (`embedding_spectrum`); empty except for modular addition
    spectra: Float[np.ndarray, "some_shots frequencies"]
    read: tuple[str, ...]  # input tokens of the probe
    wanted: tuple[str, ...]  # the target at each position; "" without one

    @classmethod
    def of(cls, run: TaskRun) -> "Film":
        """Return the recording of a run so far."""
        example = run.probed
        reads = run.model.reads(*example)[0].tolist()
        names = (*run.task.tokens, BLANK)
        ahead = int(run.plan.shape.causal)  # it predicts the next token
        answers = zip(example.tokens[0, ahead:].tolist(), example.decided[0, ahead:].tolist(), strict=True)
        spectra = [shot.spectrum for shot in run.snapshots if shot.spectrum is not None]
        return cls(
            run.plan,
            np.array([point.loss for point in run.curve], np.float32),
            np.array([point.accuracy for point in run.curve], np.float32),
            tuple(shot.step for shot in run.snapshots),
            np.array([shot.accuracy for shot in run.snapshots], np.float32),
            np.stack([shot.maps.numpy() for shot in run.snapshots]),
            np.stack([shot.lengths.numpy() for shot in run.snapshots]),
            np.stack([each.numpy() for each in spectra]) if spectra else np.zeros((0, 0), np.float16),
            tuple(names[token] for token in reads),
            tuple(names[token] if is_decided else "" for token, is_decided in answers),
        )

    def save(self, path: Path) -> None:
        """Write one NPZ file; an older file is replaced when the new one is complete."""
        arrays: dict[str, Any] = {name: np.asarray(getattr(self, name)) for name in _ARRAYS}
        part = path.with_suffix(".part")
        with part.open("wb") as file:
            np.savez_compressed(file, plan=np.array(json.dumps(asdict(self.plan))), **arrays)
        part.replace(path)


def load_film(path: Path) -> Film:
    """Return the recording in a file."""
    try:
        with np.load(path, allow_pickle=False) as file:
            plan = json.loads(str(file["plan"]))
            found = {name: file[name] for name in _ARRAYS}
    except (OSError, KeyError, ValueError, EOFError, zipfile.BadZipFile) as error:
        raise ValueError(f"{path.name}: expected a recorded run, got {error}") from error
    for name in ("shots", "read", "wanted"):
        found[name] = tuple(found[name].tolist())
    return Film(Plan(**plan | {"shape": Shape(**plan["shape"])}), **found)
