"""Train a vision transformer on labelled pictures: one loop for every classifier."""

import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import cast

import numpy as np
import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from recipes.loop import RunOptions, TrainingConfig, TrainingState, fast_pass, run_epochs, seeded_generator
from recipes.optimizer import Optimizers
from recipes.picture_sets import Pictures
from recipes.spread import key_penalty
from viz_core.images.preprocessing import Preparation
from viz_core.models.vit import ViT
from viz_core.trace import record


@dataclass(frozen=True)
class Views:
    """Limits of the augmentation; each change is drawn uniformly for each picture."""

    shift: float = 0.1  # of the side, both ways
    zoom: float = 0.15  # of the scale, both ways
    turn: float = 10.0  # degrees, both ways
    mirror: bool = True  # left and right, every other time
    brightness: float = 0.0  # also contrast and colour; up and down


def random_views(
    X: Float[Tensor, "batch channels height width"], side: int, views: Views, generator: torch.Generator
) -> Float[Tensor, "batch channels side side"]:
    """Return one view of each normalised picture, of side x side pixels.

    Moving, turning, zooming, mirroring and resizing are one bilinear resampling, so nothing is blurred twice;
    what comes in from outside is a picture's own edge, repeated. All random numbers come from `generator`, on the
    CPU, so that a run is the same on every device.
    """
    n = X.shape[0]
    draw = (2 * torch.rand(8, n, generator=generator) - 1).to(X.device)
    angle = draw[0] * math.radians(views.turn)
    scale = 1 + draw[1] * views.zoom
    flip = torch.where(draw[4] < 0, -1.0, 1.0) if views.mirror else torch.ones_like(draw[4])
    cos, sin = angle.cos() * scale, angle.sin() * scale
    shift = 2 * views.shift * draw[2:4]  # the whole picture spans -1 to 1
    theta = torch.stack((flip * cos, -sin, shift[0], flip * sin, cos, shift[1]), dim=-1).reshape(n, 2, 3)
    grid = F.affine_grid(theta.to(X.dtype), [n, X.shape[1], side, side], align_corners=False)
    seen = F.grid_sample(X, grid, mode="bilinear", padding_mode="border", align_corners=False)
    if views.brightness:
        seen = _adjust(seen, 1 + views.brightness * draw[5:8, :, None, None, None], views.brightness * draw[5])
    return seen


def soft_targets(labels: Int[Tensor, " batch"], num_classes: int, smoothing: float) -> Float[Tensor, "batch classes"]:
    """(1 - eps) one_hot + eps / classes (Szegedy 2016, section 7)."""
    return F.one_hot(labels, num_classes).float() * (1 - smoothing) + smoothing / num_classes


def _adjust(seen: Tensor, factors: Tensor, brighter: Tensor) -> Tensor:
    """Change brightness, then contrast around the picture's mean, then saturation around each pixel's grey."""
    seen = seen + brighter[:, None, None, None]
    mean = seen.mean(dim=(1, 2, 3), keepdim=True)
    seen = mean + (seen - mean) * factors[1]
    grey = seen.mean(dim=1, keepdim=True)
    return grey + (seen - grey) * factors[2]


@dataclass(frozen=True)
class ClassifierConfig(TrainingConfig):
    """Training configuration of a classifier."""

    epochs: int = 40
    muon_lr: float | None = 6e-3
    weight_decay: float = 0.05
    warm_up: float = 0.05
    label_smoothing: float = 0.05
    batch_size: int = 256
    sides: tuple[tuple[float, int], ...] = ((0.0, 28),)  # from this part of training on, pictures this many pixels wide
    views: Views = field(default_factory=Views)
    average: float = 0.99  # share of the old weights that each step leaves in their running average
    held_out: int = 2000  # training pictures put aside for the curve
    start: str | None = None  # a shipped classifier whose weights training begins with
    teacher_share: float = 0.0  # of each target that is what the start's weights predict
    key_penalty: float = 0.0  # nats a layer for heads whose queries rest on one key (recipes.spread)
    free_on_key: float = 0.2  # mean weight on a key that costs nothing

    def side(self, progress: float) -> int:
        """Side of the training pictures at this part of training (progressive resolution, Tan and Le 2021)."""
        return [side for start, side in self.sides if progress >= start][-1]


def train_classifier(
    build: Callable[[], ViT],
    pictures: Pictures,
    preparation: Preparation,
    config: ClassifierConfig,
    run: RunOptions,
    start: ViT | None = None,
) -> tuple[ViT, TrainingState]:
    """Train the model that `build()` makes, until the epochs or minutes are used up; writes last.pt, to resume from.

    With `start`, training begins with its weights, whose predictions are `teacher_share` of each target.

    Returns:
        The model with its averaged weights, and the state with the learning curve. Nothing is selected on the
        held-out pictures: they are for the curve alone.
    """
    if config.teacher_share and start is None:
        raise ValueError("teacher_share: expected a model to start from, whose predictions are learned, got none")
    train, held_out = hold_out(pictures, config)
    run.begin(config.seed)
    model = build()
    if start is not None:
        model.load_state_dict(start.state_dict())
        start.to(run.device).eval()
    model.to(run.device)
    optimizers = Optimizers(model, config.muon_lr, config.adam_lr, config.weight_decay, outputs=[model.head])
    averaged = AveragedModel(model, multi_avg_fn=running_average(config.average))
    checkpoint, state = run.open(TrainingState, model=model, averaged=averaged, optimizers=optimizers)
    train, held_out = train.to(run.device), held_out.to(run.device)
    num_classes = int(pictures.labels.max()) + 1
    batches = max(1, len(train.labels) // config.batch_size)

    def plan(epoch: int) -> Sequence[Tensor]:
        return torch.randperm(len(train.labels), generator=seeded_generator(config.seed, epoch)).tensor_split(batches)

    def loss_of(rows: Int[Tensor, " batch"], progress: float) -> tuple[Tensor, int]:
        random = seeded_generator(config.seed, state.epoch, state.batch)
        X, targets = train.part(rows.to(run.device))
        views = random_views(preparation.normalise(X), config.side(progress), config.views, random)
        wanted = soft_targets(targets, num_classes, config.label_smoothing)
        if config.teacher_share and start is not None:
            with torch.no_grad():
                wanted = wanted.lerp(logits(start, views).softmax(dim=-1), config.teacher_share)
        with record(differentiable=True) if config.key_penalty else nullcontext() as trace:
            loss = F.cross_entropy(logits(model, views), wanted)
        for call in trace or ():
            loss = loss + config.key_penalty * key_penalty(call.graph_weights, config.free_on_key)
        return loss, len(rows)

    smooth = cast(ViT, averaged.module)
    run_epochs(
        model,
        optimizers,
        state,
        config,
        checkpoint,
        minutes=run.minutes,
        plan=plan,
        loss_of=loss_of,
        validate=lambda: _validate(smooth, held_out, preparation),
        unit="pictures",
        after_step=lambda: averaged.update_parameters(model),
    )
    return smooth.eval(), state


def running_average(share: float) -> Callable[[Sequence[Tensor], Sequence[Tensor], Tensor | int], None]:
    """Return an exponential moving average with decay `share`, smaller in the first steps."""

    @torch.no_grad()
    def update(averages: Sequence[Tensor], weights: Sequence[Tensor], steps: Tensor | int) -> None:
        decay = min(share, (1 + float(steps)) / (10 + float(steps)))
        get_ema_multi_avg_fn(decay)(list(averages), list(weights), steps)

    return update


def logits(model: ViT, X: Float[Tensor, "batch channels height width"]) -> Float[Tensor, "batch classes"]:
    """Logits in float32 of a pass in the device's fast precision."""
    with fast_pass(X.device):
        return model(X).float()


@torch.inference_mode()
def most_on_one_key(model: ViT, pictures: Pictures, preparation: Preparation) -> Float[np.ndarray, "layers heads"]:
    """Mean over pictures of max_j w_j, with w_j the mean weight of a head's queries on key j."""
    with record() as trace:
        model.eval()(preparation.normalise(pictures.pixels.to(next(model.parameters()).device)))
    return np.stack([call.weights().mean(dim=-2).amax(dim=-1).mean(dim=0).cpu().numpy() for call in trace])


@torch.inference_mode()
def predict(model: ViT, pictures: Pictures, preparation: Preparation, rows: int = 500) -> Float[Tensor, "n classes"]:
    """Log-probabilities of each label for each picture, as it is, in float32."""
    model.eval()
    device = next(model.parameters()).device
    parts = [model(preparation.normalise(X.to(device))).log_softmax(dim=-1) for X in pictures.pixels.split(rows)]
    return torch.cat(parts).cpu()


def accuracy(log_p: Float[Tensor, "n classes"], labels: Int[Tensor, " n"]) -> float:
    """100 / n sum_i [argmax log p_i = y_i]: the percentage of pictures whose likeliest label is the right one."""
    return 100 * float((log_p.argmax(dim=-1) == labels.cpu()).float().mean())


def hold_out(pictures: Pictures, config: ClassifierConfig) -> tuple[Pictures, Pictures]:
    """Split the pictures into training pictures and `held_out` others, always the same ones."""
    n = len(pictures.labels)
    if not 0 < config.held_out < n:
        raise ValueError(f"expected more than {config.held_out:,} pictures to train on and to hold out, got {n:,}")
    order = torch.randperm(n, generator=seeded_generator(config.seed, -1))
    return pictures.part(order[config.held_out :]), pictures.part(order[: config.held_out])


def _validate(model: ViT, held_out: Pictures, preparation: Preparation) -> dict[str, float]:
    log_p = predict(model, held_out, preparation)
    loss = float(F.nll_loss(log_p, held_out.labels.cpu()))
    return {"validation_loss": loss, "validation_accuracy": accuracy(log_p, held_out.labels)}
