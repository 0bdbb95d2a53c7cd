"""Train a vision transformer on labelled pictures: one loop for every classifier, on two cores or on a GPU."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import cast

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from torch.optim.swa_utils import AveragedModel

from viz_core.images.preprocessing import Preparation
from viz_core.models.vit import ViT
from viz_core.runtime.device import fast_precision
from viz_core.training.augmentation import Views, mix, random_views, soft_targets
from viz_core.training.files import load_progress, save_progress
from viz_core.training.memory import keep_freed_memory
from viz_core.training.mimetic import start_like_trained
from viz_core.training.optimizer import Optimizers, learning_rate
from viz_core.training.picture_sets import Pictures
from viz_core.training.progress import Clock


@dataclass(frozen=True)
class Recipe:
    """How a classifier is trained."""

    epochs: int = 100  # passes over the training pictures, if the time allows
    batch_size: int = 512
    sides: tuple[tuple[float, int], ...] = ((0.0, 28),)  # from this part of training on, pictures this many pixels wide
    views: Views = field(default_factory=Views)
    mixed: float = 0.0  # part of the batches whose pictures are mixed in pairs
    muon_lr: float | None = 4e-3  # peak rate of the matrices in blocks; None leaves them to Adam
    adam_lr: float = 2e-3  # peak rate of patch embedding, positions, norms, biases and head
    weight_decay: float = 0.05  # on the matrices in blocks
    warm_up: float = 0.03  # part of training in which the rate climbs
    decay_from: float = 0.05  # from here on it falls to 0
    cosine: bool = True  # along half a wave; else in a straight line
    label_smoothing: float = 0.1
    clip_norm: float = 1.0  # largest norm of the whole gradient
    average: float = 0.998  # share of the old weights that each step leaves in their running average
    mimetic: bool = True  # whether attention begins as trained models' ends; see viz_core.training.mimetic
    held_out: int = 2000  # training pictures put aside for the curve
    save_minutes: float = 5.0  # how much work a kill may cost
    seed: int = 0

    def side(self, progress: float) -> int:
        """Side of the training pictures at this part of training (progressive resolution, Tan and Le 2021)."""
        return [side for start, side in self.sides if progress >= start][-1]


@dataclass
class State:
    """Where training stands: all that a resumed run needs beside weights and optimisers."""

    epoch: int = 0
    batch: int = 0  # batches of this epoch already done
    elapsed: float = 0.0
    curve: list[dict[str, float]] = field(default_factory=list)


def train_classifier(
    build: Callable[[], ViT],
    pictures: Pictures,
    preparation: Preparation,
    out: Path,
    recipe: Recipe,
    device: torch.device,
    minutes: float | None = None,
    resume: bool = False,
) -> tuple[ViT, State]:
    """Train the model that `build()` makes, until its epochs or its minutes are spent; writes last.pt into `out`.

    Returns:
        The model with its averaged weights, and the state with the learning curve. Nothing is selected on the
        held-out pictures: they are for the curve alone.

    Raises:
        ValueError: if there is nothing to resume from, or too few pictures to train on.
    """
    train, held_out = hold_out(pictures, recipe)
    keep_freed_memory()
    torch.manual_seed(recipe.seed)
    out.mkdir(parents=True, exist_ok=True)
    model = build()
    if recipe.mimetic:
        start_like_trained(model)
    model.to(device)
    optimizers = Optimizers(model, recipe.muon_lr, recipe.adam_lr, recipe.weight_decay, outputs=[model.head])
    averaged = AveragedModel(model, multi_avg_fn=running_average(recipe.average))
    state = _load(out / "last.pt", model, averaged, optimizers, device) if resume else State()
    clock = Clock(recipe.epochs, minutes, state.elapsed)
    saved_at = clock.elapsed
    train, held_out = train.to(device), held_out.to(device)
    num_classes = int(pictures.labels.max()) + 1
    batches = max(1, len(train.labels) // recipe.batch_size)

    while clock.progress(state.epoch) < 1:
        order = torch.randperm(len(train.labels), generator=_generator(recipe.seed, state.epoch))
        losses, seen, started = [], 0, clock.elapsed
        model.train()
        for rows in order.tensor_split(batches)[state.batch :]:
            done = state.epoch + state.batch / batches
            progress = clock.progress(done)
            if progress >= 1:
                break
            random = _generator(recipe.seed, state.epoch, state.batch)
            X, targets = train.part(rows.to(device))
            views = random_views(preparation.normalise(X), recipe.side(progress), recipe.views, random)
            wanted = soft_targets(targets, num_classes, recipe.label_smoothing)
            if float(torch.rand((), generator=random)) < recipe.mixed:
                views, wanted = mix(views, wanted, random)
            loss = F.cross_entropy(logits(model, views), wanted)
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), recipe.clip_norm)
            optimizers.step(learning_rate(progress, recipe.warm_up, recipe.decay_from, recipe.cosine))
            averaged.update_parameters(model)
            state.batch += 1
            losses.append(loss.detach())
            seen += len(rows)
            if clock.due:  # a loss is asked for when it is printed, not before: a GPU would wait for each
                clock.line(done, float(losses[-1]), seen / (clock.elapsed - started), "pictures")
            if state.batch < batches and clock.elapsed - saved_at > 60 * recipe.save_minutes:
                saved_at = clock.elapsed
                _save(out / "last.pt", model, averaged, optimizers, state, clock)
        if not losses:  # the time was up between two epochs
            break
        finished = state.epoch + state.batch / batches
        state.epoch, state.batch = state.epoch + 1, 0
        point = {
            "epoch": finished,
            "train_loss": float(torch.stack(losses).mean()),
            **_validate(cast(ViT, averaged.module), held_out, preparation),
        }
        state.curve.append({name: round(value, 4) for name, value in point.items()})
        print(json.dumps(state.curve[-1]), flush=True)
        _save(out / "last.pt", model, averaged, optimizers, state, clock)

    state.elapsed = clock.elapsed
    return cast(ViT, averaged.module).eval(), state


def running_average(share: float) -> Callable[[Sequence[Tensor], Sequence[Tensor], Tensor | int], None]:
    """Old weights keep `share` of the average at each step, and less in the first ones, which would linger in it."""

    @torch.no_grad()
    def update(averages: Sequence[Tensor], weights: Sequence[Tensor], steps: Tensor | int) -> None:
        kept = min(share, (1 + float(steps)) / (10 + float(steps)))
        torch._foreach_lerp_(list(averages), list(weights), 1 - kept)

    return update


def logits(model: ViT, X: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch classes"]:
    """Logits in float32 of a pass in the device's fast precision."""
    with torch.autocast(X.device.type, torch.bfloat16, enabled=fast_precision(X.device) == torch.bfloat16):
        return model(X).float()


@torch.inference_mode()
def predict(model: ViT, pictures: Pictures, preparation: Preparation, rows: int = 500) -> Float[Tensor, "n classes"]:
    """Log-probabilities of each label for each picture, as it is, in float32."""
    model.eval()
    device = next(model.parameters()).device
    parts = [model(preparation.normalise(X.to(device))).log_softmax(dim=-1) for X in pictures.pixels.split(rows)]
    return torch.cat(parts).cpu()


def accuracy(log_p: Float[Tensor, "n classes"], labels: Int[Tensor, "n"]) -> float:
    """Percentage of pictures whose likeliest label is the right one."""
    return 100 * float((log_p.argmax(dim=-1) == labels.cpu()).float().mean())


def hold_out(pictures: Pictures, recipe: Recipe) -> tuple[Pictures, Pictures]:
    """Pictures to train on, and `held_out` others, the same ones every time.

    Raises:
        ValueError: if none would be left to train on.
    """
    n = len(pictures.labels)
    if not 0 < recipe.held_out < n:
        raise ValueError(f"expected more than {recipe.held_out:,} pictures to train on and to hold out, got {n:,}")
    order = torch.randperm(n, generator=_generator(recipe.seed, -1))
    return pictures.part(order[recipe.held_out :]), pictures.part(order[: recipe.held_out])


def _validate(model: ViT, held_out: Pictures, preparation: Preparation) -> dict[str, float]:
    log_p = predict(model, held_out, preparation)
    loss = float(F.nll_loss(log_p, held_out.labels.cpu()))
    return {"validation_loss": loss, "validation_accuracy": accuracy(log_p, held_out.labels)}


def _generator(*seeds: int) -> torch.Generator:
    """Random numbers of one epoch and batch, whenever it is reached: a resumed run draws those of an unbroken one."""
    mixed = 0
    for seed in seeds:
        mixed = (mixed * 1_000_003 + seed + 1) % 2**63
    return torch.Generator().manual_seed(mixed)


def _save(path: Path, model: ViT, averaged: AveragedModel, optimizers: Optimizers, state: State, clock: Clock) -> None:
    state.elapsed = clock.elapsed
    save_progress(
        path,
        {
            "model": model.state_dict(),
            "averaged": averaged.state_dict(),
            "optimizers": optimizers.state_dict(),
            "state": asdict(state),
        },
    )


def _load(path: Path, model: ViT, averaged: AveragedModel, optimizers: Optimizers, device: torch.device) -> State:
    content = load_progress(path, device)
    model.load_state_dict(content["model"])
    averaged.load_state_dict(content["averaged"])
    optimizers.load_state_dict(content["optimizers"])
    return State(**content["state"])
