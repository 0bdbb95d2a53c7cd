"""The training loop: batches until the epochs or minutes are used up, with regular checkpoints."""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from recipes.files import Clock
from recipes.optimizer import Optimizers, learning_rate
from viz_core.runtime.device import describe_device, reuse_freed_memory

B = TypeVar("B")
State = TypeVar("State", bound="TrainingState")


@dataclass(frozen=True)
class TrainingConfig:
    """Training configuration of any model."""

    epochs: int = 30  # passes over the training data, if the time allows
    muon_lr: float | None = 4e-3  # peak rate of the matrices in blocks; None leaves them to Adam
    adam_lr: float = 2e-3  # peak rate of embeddings, norms, biases and output layers
    weight_decay: float = 0.01  # on the matrices
    warm_up: float = 0.02  # part of training in which the rate climbs
    decay_from: float = 0.3  # from here on it falls to 0
    label_smoothing: float = 0.1
    clip_norm: float = 1.0  # largest norm of the whole gradient
    save_minutes: float = 5.0  # how much work a kill may cost
    seed: int = 0


@dataclass
class TrainingState:
    """State of a run: what a resumed run needs besides weights and optimisers."""

    epoch: int = 0
    batch: int = 0  # batches of this epoch already done
    updates: int = 0  # steps of the optimisers, over all epochs
    elapsed: float = 0.0
    curve: list[dict[str, float]] = field(default_factory=list)
    lengths: list[dict[str, float | None]] = field(default_factory=list)  # one, unless it was changed on the way

    def set_length(self, epochs: int, minutes: float | None) -> None:
        """Record the planned length, and the update at which it was set, if it differs from the last one."""
        length = {"epochs": epochs, "minutes": minutes}
        if not self.lengths or not length.items() <= self.lengths[-1].items():
            self.lengths.append({"updates": self.updates, **length})

    def record(self, config: TrainingConfig, device: torch.device) -> dict[str, Any]:
        """Return what training.json of every model has."""
        return {
            "curve": self.curve,
            "updates": self.updates,
            "seconds": round(self.elapsed),
            "device": describe_device(device),
            "recipe": asdict(config),
        }


@dataclass(frozen=True)
class TrainingCheckpoint:
    """A file with the state of a run and the state dict of each part, by name."""

    path: Path
    parts: dict[str, Any]

    def load(self, device: torch.device) -> dict[str, Any]:
        """Load the state dicts into the parts, and return the stored state."""
        if not self.path.exists():
            raise ValueError(f"nothing to resume from: {self.path} does not exist")
        content = torch.load(self.path, map_location=device, weights_only=True)
        for name, part in self.parts.items():
            part.load_state_dict(content[name])
        return content["state"]

    def save(self, state: TrainingState) -> None:
        """Write the state and the state dict of each part; an interruption leaves the old file intact."""
        content = {name: part.state_dict() for name, part in self.parts.items()}
        part = self.path.with_suffix(".part")
        torch.save(content | {"state": asdict(state)}, part)
        part.replace(self.path)


@dataclass(frozen=True)
class RunOptions:
    """Where a model is trained, and for how long."""

    out: Path  # folder of the run: last.pt, to resume from, and what else training writes
    device: torch.device
    minutes: float | None = None  # of training; None for all epochs
    resume: bool = False  # whether to continue from last.pt

    def begin(self, seed: int) -> None:
        """Seed the random numbers and make the folder."""
        reuse_freed_memory()
        torch.manual_seed(seed)
        self.out.mkdir(parents=True, exist_ok=True)

    def open(self, state_class: type[State], **parts: Any) -> tuple[TrainingCheckpoint, State]:
        """Return the checkpoint of these parts, and the state: new, or restored with the parts."""
        checkpoint = TrainingCheckpoint(self.out / "last.pt", parts)
        return checkpoint, state_class(**checkpoint.load(self.device)) if self.resume else state_class()


def seeded_generator(*seeds: int) -> torch.Generator:
    """Random numbers of one epoch and batch, whenever it is reached: a resumed run draws those of an unbroken one."""
    mixed = 0
    for seed in seeds:
        mixed = (mixed * 1_000_003 + seed + 1) % 2**63
    return torch.Generator().manual_seed(mixed)


def mean_over(parts: Iterable[tuple[Tensor, int]]) -> float:
    """Sum of the losses divided by the sum of the counts."""
    total, count = 0.0, 0
    for loss, n in parts:
        total, count = total + float(loss), count + n
    return total / max(1, count)


def run_epochs(
    model: nn.Module,
    optimizers: Optimizers,
    state: TrainingState,
    config: TrainingConfig,
    checkpoint: TrainingCheckpoint,
    *,
    minutes: float | None,
    plan: Callable[[int], Sequence[B]],
    loss_of: Callable[[B, float], tuple[Tensor, int]],
    validate: Callable[[], dict[str, float]],
    unit: str,
    after_step: Callable[[], None] = lambda: None,
    enough: Callable[[], bool] = lambda: False,
) -> None:
    """Train until the epochs or minutes are used up, or `enough` is true; `state` is updated.

    Args:
        plan: the batches of an epoch, in order; the same in every call.
        loss_of: the mean loss of a batch at this part of training, and how many `unit`s the batch has.
        validate: the numbers of the curve after an epoch, beside "epoch" and "train_loss".
        after_step: what follows each step of the optimisers, before matrices are rounded.
        enough: whether to stop before the next epoch.
    """
    state.set_length(config.epochs, minutes)
    clock = Clock(config.epochs, minutes, state.elapsed)
    saved_at = clock.elapsed

    def save() -> None:
        state.elapsed = clock.elapsed
        checkpoint.save(state)

    while clock.progress(state.epoch) < 1 and not enough():
        batches = plan(state.epoch)
        losses, seen, started = [], 0, clock.elapsed
        model.train()
        for batch in batches[state.batch :]:
            done = state.epoch + state.batch / len(batches)
            progress = clock.progress(done)
            if progress >= 1:
                break
            loss, count = loss_of(batch, progress)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), config.clip_norm)
            optimizers.step(learning_rate(progress, config.warm_up, config.decay_from), after_step)
            state.batch += 1
            state.updates += 1
            losses.append(loss.detach())
            seen += count
            if clock.due:  # reading the loss more often would make a GPU wait
                clock.line(done, float(losses[-1]), seen / (clock.elapsed - started), unit)
            if state.batch < len(batches) and clock.elapsed - saved_at > 60 * config.save_minutes:
                saved_at = clock.elapsed
                save()
        if not losses:  # the time was up between two epochs
            break
        finished = state.epoch + state.batch / len(batches)
        state.epoch, state.batch = state.epoch + 1, 0
        point = {"epoch": finished, "train_loss": float(torch.stack(losses).mean()), **validate()}
        state.curve.append({name: round(value, 4) for name, value in point.items()})
        print(json.dumps(state.curve[-1]), flush=True)
        save()

    state.elapsed = clock.elapsed
