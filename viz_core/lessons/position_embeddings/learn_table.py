"""A position table trained from scratch on a task that needs positions and nothing else."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.positional.sinusoidal import sinusoidal_table
from viz_core.trace import attention_weights


class Learning(NamedTuple):
    """State of training: steps done, the loss of each so far, and the current table."""

    step: int
    num_steps: int
    losses: tuple[float, ...]
    table: Float[Tensor, "n d"]


def neighbour_weights(num_tokens: int, reach: int) -> Float[Tensor, "n n"]:
    """Target attention of the task: equal weight on every token up to `reach` away, none beyond."""
    positions = torch.arange(num_tokens)
    neighbours = ((positions[:, None] - positions).abs() <= reach).float()
    return neighbours / neighbours.sum(dim=1, keepdim=True)


def table_weights(table: Float[Tensor, "n d"], sharpness: float = 1.0) -> Float[Tensor, "n n"]:
    """softmax(sharpness P P^T / sqrt(d)): attention between positions alone."""
    positions = table[None, None]
    return attention_weights(positions, positions, scale=sharpness * table.shape[1] ** -0.5)[0, 0]


def task_loss(weights: Float[Tensor, "n n"], wanted: Float[Tensor, "n n"]) -> float:
    """E |A x - T x|^2 / n over x ~ N(0, I): ||A - T||_F^2 / n, exactly, for weights A and wanted weights T."""
    return float((weights - wanted).square().sum() / len(wanted))


class LearnedResult(NamedTuple):
    """A table measured on the task."""

    target: Float[Tensor, "n n"]  # attention of the task, `neighbour_weights`
    weights: Float[Tensor, "n n"]
    loss: float  # of this table
    # sinusoidal, none: losses of sinusoids at their best sharpness, and of equal weights everywhere
    sinusoidal: float
    none: float
    share: float  # of the variance of P P^T that offsets explain


def measure_table(table: Float[Tensor, "n d"], reach: int) -> LearnedResult:
    """Measure a table, with the losses of tables that are not trained."""
    n, d = table.shape
    target, weights = neighbour_weights(n, reach), table_weights(table)
    none = task_loss(torch.full_like(target, 1 / n), target)
    losses = task_loss(weights, target), sinusoidal_loss(n, d, target), none
    return LearnedResult(target, weights, *losses, table_offset_share(table))


def sinusoidal_loss(num_tokens: int, num_hiddens: int, wanted: Float[Tensor, "n n"]) -> float:
    """The loss of sinusoids at the best of 60 sharpnesses from 0.1 to 100."""
    table = sinusoidal_table(num_tokens, num_hiddens)
    return min(task_loss(table_weights(table, float(s)), wanted) for s in torch.logspace(-1, 2, 60))


def offset_share(similarity: Float[Tensor, "n n"]) -> float:
    """1 - sum (s_ij - m_(j-i))^2 / sum (s_ij - m)^2: the share of a map's variance that the offset alone explains.

    m_o is the mean of the diagonal j - i = o and m that of the map; 1 for a map that is constant on each diagonal.
    """
    n = similarity.shape[0]
    explained = torch.empty_like(similarity)
    for offset in range(-n + 1, n):
        mean = similarity.diagonal(offset).mean()
        explained.diagonal(offset).fill_(mean)
    return float(1 - (similarity - explained).square().sum() / (similarity - similarity.mean()).square().sum())


def table_offset_share(table: Float[Tensor, "n d"]) -> float:
    """`offset_share` of P P^T; 1 for a single position."""
    return offset_share(table @ table.T) if len(table) > 1 else 1.0


def untrained_table(
    num_tokens: int, num_hiddens: int, generator: torch.Generator | None = None
) -> Float[Tensor, "n d"]:
    """The initial table, N(0, 0.02^2) as in BERT and ViT."""
    generator = torch.Generator().manual_seed(0) if generator is None else generator
    return 0.02 * torch.randn(num_tokens, num_hiddens, generator=generator)


def learn_table(
    num_tokens: int = 24, num_hiddens: int = 32, reach: int = 2, num_steps: int = 600, seed: int = 0, every: int = 20
) -> Iterator[Learning]:
    """Train a table P so that softmax(P P^T / sqrt(d)) x is the mean of each number's neighbours.

    Each step draws 64 sequences x ~ N(0, I) and moves P by Adam (learning rate 0.05) down the mean
    squared error. P starts as `untrained_table` has it.

    Yields:
        the state of training every `every` steps and at the end, so that a caller can show it and stop.
    """
    generator = torch.Generator().manual_seed(seed)
    wanted = neighbour_weights(num_tokens, reach)
    table = untrained_table(num_tokens, num_hiddens, generator).requires_grad_()
    optimizer = torch.optim.Adam([table], lr=0.05)
    losses: list[float] = []
    for step in range(1, num_steps + 1):
        x = torch.randn(num_tokens, 64, generator=generator)
        loss = ((table_weights(table) - wanted) @ x).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step % every == 0 or step == num_steps:
            yield Learning(step, num_steps, tuple(losses), table.detach().clone())
