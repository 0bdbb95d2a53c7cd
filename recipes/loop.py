"""Losses, and the training loop: batches until the epochs or minutes are used up, with regular checkpoints."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from recipes.files import Clock
from recipes.optimizer import Optimizers, learning_rate
from viz_core.runtime.device import describe_device, fast_precision, reuse_freed_memory
from viz_core.trace import attention_weights
from viz_core.trace.outputs import pooled

_CHUNK = 512  # rows of logits at a time: 512 x 8,000 float32 are 16 MB, which stays in a processor's cache


def smoothed_cross_entropy(
    hidden: Float[Tensor, "tokens d"],
    weight: Float[Tensor, "vocab d"],
    bias: Float[Tensor, " vocab"],
    targets: Int[Tensor, " tokens"],
    smoothing: float,
) -> Float[Tensor, ""]:
    """Sum over tokens of -sum_v q_v log softmax(W h + b)_v with q = (1 - eps) one_hot + eps / vocab.

    Label smoothing is Szegedy 2016, section 7. Equal to torch's label-smoothed cross_entropy, summed,
    on W h + b; but the output layer is part of it and its gradient is taken chunk by chunk on the way
    forward, so logits for the whole batch never exist. Twice as fast on a CPU.
    """
    return _SmoothedCrossEntropy.apply(hidden, weight, bias, targets, smoothing)


class _SmoothedCrossEntropy(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, weight: Tensor, bias: Tensor, targets: Tensor, smoothing: float) -> Tensor:
        low = hidden.dtype  # the products run in the precision the hidden states came in
        cast, cast_bias = weight.to(low), bias.to(low)
        loss = hidden.new_zeros((), dtype=torch.float32)
        grad_hidden = torch.empty_like(hidden)
        grad_weight = torch.zeros_like(weight)
        grad_bias = torch.zeros_like(bias)
        for rows in torch.arange(len(targets), device=hidden.device).split(_CHUNK):
            span = slice(int(rows[0]), int(rows[-1]) + 1)
            h, target = hidden[span], targets[span, None]
            log_p = torch.addmm(cast_bias, h, cast.T).float().log_softmax(dim=-1)
            wanted = (1 - smoothing) * log_p.gather(1, target) + smoothing * log_p.mean(dim=-1, keepdim=True)
            loss -= wanted.sum()
            grad = log_p.exp_().sub_(smoothing / len(bias))  # d loss / d logits = p - q
            grad.scatter_add_(1, target, grad.new_full(target.shape, smoothing - 1))
            grad_bias += grad.sum(dim=0)
            grad = grad.to(low)
            grad_hidden[span] = grad @ cast
            grad_weight += (grad.T @ h).to(weight.dtype)
        ctx.save_for_backward(grad_hidden, grad_weight, grad_bias)
        return loss

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor, None, None]:
        scale = grads[0]
        grad_hidden, grad_weight, grad_bias = ctx.saved_tensors
        return grad_hidden * scale.to(grad_hidden.dtype), grad_weight * scale, grad_bias * scale, None, None


def distilled_cross_entropy(
    log_p: Float[Tensor, "tokens vocab"],
    taught: Float[Tensor, "tokens vocab"],
    targets: Int[Tensor, " tokens"],
    share: float,
) -> Float[Tensor, ""]:
    """Sum over tokens of -sum_v q_v log p_v with q = share p_teacher + (1 - share) one_hot.

    Hinton, Vinyals and Dean (2015, "Distilling the Knowledge in a Neural Network"), at temperature 1.

    Args:
        log_p: log softmax of the student's scores.
        taught: the teacher's probabilities.
    """
    own = log_p.gather(1, targets[:, None])
    return -(share * (taught * log_p).sum() + (1 - share) * own.sum())


@contextmanager
def fast_pass(device: torch.device) -> Iterator[None]:
    """In this block, for this thread, products run in `fast_precision(device)`, and on a CPU attention by its formula.

    torch's fused kernel saves memory, but on a CPU its gradient in bfloat16 takes seven times as long as in float32:
    more than half of a vision transformer's training. Sequences to train on are short, so their weights may be kept.
    """
    low = fast_precision(device) == torch.bfloat16
    by_formula = _Formula() if low and device.type == "cpu" else nullcontext()
    with torch.autocast(device.type, torch.bfloat16, enabled=low), by_formula:
        yield


class _Formula(TorchFunctionMode):
    """Replaces torch's attention kernel by `attention_weights` and a product."""

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """Replace calls of the kernel, and pass on any other call."""
        attends = func is F.scaled_dot_product_attention
        return (_attention if attends else func)(*args, **(kwargs or {}))


def _attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,  # noqa: ARG001, fewer key heads are seen by their number
) -> Tensor:
    """The kernel's result, with weights in float32 and their product with the values in the values' precision."""
    boolean = attn_mask is not None and attn_mask.dtype == torch.bool
    mask, bias = (attn_mask, None) if boolean else (None, attn_mask)
    with torch.autocast(query.device.type, enabled=False):
        return pooled(attention_weights(query, key, mask, bias, is_causal, scale), value, dropout_p)


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
