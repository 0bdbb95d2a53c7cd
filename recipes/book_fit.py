"""The book's training loop: every example once an epoch in random order, then a measurement."""

from __future__ import annotations

import json
import math
from collections.abc import Callable

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

BATCH_SIZE = 128


def fit(
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    num_examples: int,
    loss: Callable[[Int[Tensor, " rows"]], Float[Tensor, ""]],
    measure: Callable[[], dict[str, float]],
    epochs: int,
    clip_norm: float = math.inf,
) -> list[dict[str, float]]:
    """Train the model in place (Dive into Deep Learning, sections 3.2 and 9.5, class Trainer).

    Args:
        loss: the mean loss of the examples in these rows.
        measure: measures the model after an epoch, in evaluation mode.
        clip_norm: the gradient is scaled down to this norm where it is longer.

    Returns:
        A point of the learning curve for each epoch: "epoch", "train_loss" and what was measured.

    Raises:
        ValueError: if epochs < 1.
    """
    if epochs < 1:
        raise ValueError(f"epochs: expected at least 1, got {epochs}")
    curve = []
    for epoch in range(1, epochs + 1):
        model.train()
        losses = []
        for rows in torch.randperm(num_examples).split(BATCH_SIZE):
            batch_loss = loss(rows)
            optimizer.zero_grad()
            batch_loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), clip_norm)
            optimizer.step()
            losses.append(batch_loss.detach())
        model.eval()
        with torch.no_grad():
            point = {"epoch": epoch, "train_loss": float(torch.stack(losses).mean()), **measure()}
        curve.append({name: round(value, 4) for name, value in point.items()})
        print(json.dumps(curve[-1]), flush=True)
    return curve
