"""Muon for the matrices of the blocks, Adam for embeddings, norms and biases, and one schedule for both."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import nn

from recipes.muon import Muon
from viz_core.runtime.device import fast_precision


class Optimizers:
    """Muon (Jordan 2024) on hidden matrices, AdamW on all else, stepped together.

    Muon orthogonalises each matrix's momentum before the step, so every direction of the matrix
    learns at one pace; at an equal number of steps it reaches a lower loss than Adam. Without a rate
    for Muon, AdamW takes the matrices too.
    """

    def __init__(
        self,
        model: nn.Module,
        muon_lr: float | None,
        adam_lr: float,
        weight_decay: float,
        outputs: Sequence[nn.Module] = (),
    ) -> None:
        """`outputs` are output layers: like embeddings, their matrices are Adam's."""
        embeddings = {id(m.weight) for m in model.modules() if isinstance(m, nn.Embedding)}
        embeddings |= {id(p) for layer in outputs for p in layer.parameters()}
        matrices = [p for p in model.parameters() if p.dim() == 2 and id(p) not in embeddings]
        rest = [p for p in model.parameters() if p.dim() != 2 or id(p) in embeddings]
        self.parts: dict[str, tuple[torch.optim.Optimizer, float]] = {}
        if muon_lr is not None:
            precision = fast_precision(matrices[0].device)
            muon = Muon(matrices, muon_lr, momentum=0.95, weight_decay=weight_decay, dtype=precision)
            self.parts["muon"] = (muon, muon_lr)
        groups = [{"params": rest, "weight_decay": 0.0}]
        if muon_lr is None:
            groups.append({"params": matrices, "weight_decay": weight_decay})
        adam = torch.optim.AdamW(groups, lr=adam_lr, betas=(0.9, 0.98), fused=True)
        self.parts["adam"] = (adam, adam_lr)

    def step(self, rate: float) -> None:
        """One step at `rate` times the peak learning rates, and clear the gradients."""
        for optimizer, peak in self.parts.values():
            for group in optimizer.param_groups:
                group["lr"] = rate * peak
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)

    def state_dict(self) -> dict[str, object]:
        """The state of each optimiser, by its name."""
        return {name: optimizer.state_dict() for name, (optimizer, _) in self.parts.items()}

    def load_state_dict(self, state: dict[str, dict[str, object]]) -> None:
        """Go on from what `state_dict` gave."""
        for name, (optimizer, _) in self.parts.items():
            optimizer.load_state_dict(state[name])


def learning_rate(progress: float, warm_up: float, decay_from: float, cosine: bool = False) -> float:
    """Fraction of the peak rate at `progress` in [0, 1]: a ramp up, a plateau, a straight line down to 0.

    With `cosine`, half a wave of it down to 0 instead of the line (Loshchilov and Hutter 2017, equation 5).
    """
    left = min(1.0, max(0.0, (1.0 - progress) / (1.0 - decay_from)))
    return min(progress / warm_up, (1 - math.cos(math.pi * left)) / 2 if cosine else left)
