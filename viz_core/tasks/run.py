"""Train a task step by step, reproducible from one seed."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Generator, Tensor

from viz_core.maps.contributions import value_lengths
from viz_core.runtime.hooks import may_end
from viz_core.tasks.generating import MODULUS, TASKS, Examples, Task
from viz_core.tasks.model import Shape, TaskTransformer
from viz_core.trace import Trace, record
from viz_core.trace.arguments import check_whole

_TRAIN, _TEST, _PROBE = range(3)  # what numbers are drawn for: each has a stream of its own
_seeding = threading.Lock()  # first weights are drawn from torch's one stream, which threads share


@dataclass(frozen=True)
class Plan:
    """The task, the model and the training of a run.

    Attributes:
        task: one of TASKS.
        shape: of the model.
        steps: number of updates; the learning rate falls to 0 by then.
        shortest, longest: lengths trained on; each batch has one of them.
        batch_size: examples of an update.
        learning_rate: at its peak, after `warm_up` updates.
        weight_decay: AdamW's (Loshchilov 2019); it makes modular addition generalise rather than be memorised.
        every: updates between two snapshots.
        seed: of the initial weights and of all examples.
    """

    task: str
    shape: Shape = field(default_factory=Shape)
    steps: int = 1000
    shortest: int = 3
    longest: int = 12
    batch_size: int = 64
    learning_rate: float = 2e-3
    warm_up: int = 50
    weight_decay: float = 0.01
    every: int = 50
    seed: int = 0

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            raise ValueError(f"task: expected one of {', '.join(TASKS)}, got {self.task!r}")
        check_whole(steps=self.steps, batch_size=self.batch_size, warm_up=self.warm_up, every=self.every)
        least, most = TASKS[self.task].shortest, TASKS[self.task].longest
        if not least <= self.shortest <= self.longest <= most:
            got = f"{self.shortest}, {self.longest}"
            raise ValueError(f"lengths: expected {least} <= shortest <= longest <= {most}, got {got}")
        if TASKS[self.task].in_order and not self.shape.causal:
            raise ValueError(f"{self.task}: expected a causal model, as each token is decided by those before it")


@dataclass(frozen=True)
class Point:
    """Loss and accuracy of one update on its batch: mean loss in nats, accuracy on decided tokens."""

    step: int
    loss: float
    accuracy: float


@dataclass(frozen=True)
class Snapshot:
    """State after a number of updates; numbers in float16."""

    step: int
    accuracy: float  # on decided tokens of held-out examples
    maps: Float[Tensor, "layers heads n n"]  # every head's map of the probe, whose rows sum to 1 up to rounding
    lengths: Float[Tensor, "layers heads n"]  # |W_o^h v_j|, the norm of each key's contribution at weight 1
    # of the embedding of numbers (`embedding_spectrum`), for modular addition; else None
    spectrum: Float[Tensor, " frequencies"] | None


class TaskRun:
    """One training run: `advance` continues it; `curve` and `snapshots` record it.

    Weights, examples and order depend on the plan alone: two runs of one plan on one machine are the same, bit for bit,
    however many updates each call of `advance` makes.
    """

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.task: Task = TASKS[plan.task]
        with _seeding, torch.random.fork_rng(devices=[]):
            torch.manual_seed(plan.seed)
            self.model = TaskTransformer(len(self.task.tokens), plan.shape)
        matrices = [weight for weight in self.model.parameters() if weight.dim() > 1]
        others = [weight for weight in self.model.parameters() if weight.dim() == 1]
        groups = [{"params": matrices, "weight_decay": plan.weight_decay}, {"params": others, "weight_decay": 0.0}]
        self.optimizer = torch.optim.AdamW(groups, lr=plan.learning_rate, betas=(0.9, 0.98))
        self.step = 0
        self.curve: list[Point] = []
        self.snapshots: list[Snapshot] = [self._snapshot()]

    def advance(self, steps: int | None = None) -> Iterator[Point]:
        """Train for a number of updates, or to the end; yield a point after each."""
        end = self.plan.steps if steps is None else min(self.plan.steps, self.step + steps)
        while self.step < end:
            may_end()
            yield self._update()

    def _update(self) -> Point:
        plan, generator = self.plan, self._generator(_TRAIN, self.step)
        length = int(torch.randint(plan.shortest, plan.longest + 1, (), generator=generator))
        examples = self.task.draw(generator, plan.batch_size, length)
        scores, right = self.model.predictions(*examples)
        loss = F.cross_entropy(scores, right)
        for group in self.optimizer.param_groups:
            group["lr"] = plan.learning_rate * _rate(self.step, plan.warm_up, plan.steps)
        self.optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.step += 1
        self.curve.append(Point(self.step, float(loss.detach()), _share_right(scores, right)))
        if self.step % plan.every == 0 or self.step == plan.steps:
            self.snapshots.append(self._snapshot())
        return self.curve[-1]

    @property
    def finished(self) -> bool:
        """Whether all updates of the plan are done."""
        return self.step >= self.plan.steps

    @torch.no_grad()
    def accuracy(self, length: int | None = None, count: int = 256) -> float:
        """Return the accuracy on decided tokens of held-out examples of this length, by default the longest trained."""
        length = self.plan.longest if length is None else length
        examples = self.task.draw(self._generator(_TEST, length), count, length, held_out=True)
        return _share_right(*self.model.predictions(*examples))

    @property
    def probed(self) -> Examples:
        """The held-out example whose maps are recorded at each snapshot."""
        return self.task.draw(self._generator(_PROBE, 0), 1, self.plan.longest, held_out=True)

    def probe(self) -> tuple[Examples, Trace]:
        """Return the probe and its trace."""
        example = self.probed
        with record(values=True) as trace, torch.no_grad():
            self.model.predictions(*example)
        return example, trace

    def _snapshot(self) -> Snapshot:
        _, trace = self.probe()
        maps = torch.stack([call.weights()[0] for call in trace]).half()
        layers = zip(trace, self.model.layers, strict=True)
        lengths = torch.stack([value_lengths(call, layer.attention.W_o)[0] for call, layer in layers]).half()
        spectrum = None
        if self.task.finite:
            spectrum = embedding_spectrum(self.model.embedding.weight[:MODULUS].detach()).half()
        return Snapshot(self.step, self.accuracy(), maps, lengths, spectrum)

    def _generator(self, purpose: int, number: int) -> Generator:
        """Return the generator of one update, test or probe."""
        return torch.Generator().manual_seed((self.plan.seed * 3 + purpose) * 1_000_003 + number)


def _rate(step: int, warm_up: int, steps: int) -> float:
    """Return the share of the peak rate: linear from 0 to 1 in `warm_up` updates, then linear to 0 at the last."""
    return min((step + 1) / warm_up, 1.0, (steps - step) / max(1, steps - warm_up))


def _share_right(scores: Float[Tensor, "decided vocab"], right: Int[Tensor, " decided"]) -> float:
    return float((scores.argmax(dim=1) == right).float().mean())


def embedding_spectrum(embedding: Float[Tensor, "p d"]) -> Float[Tensor, " frequencies"]:
    """The share of each frequency k = 1 to floor(p/2) in the rows of an embedding, in all dimensions together.

    s_k = sum_d |F_kd|^2 / sum_k' sum_d |F_k'd|^2, with F_kd = sum_a E_ad e^(-2 pi i k a / p); what is the same for all
    numbers, k = 0, is left out. They sum to 1 (Nanda 2023, section 4.2).
    """
    power = torch.fft.rfft(embedding.double(), dim=0).abs().square().sum(dim=1)[1:]
    return (power / power.sum()).to(embedding.dtype)
