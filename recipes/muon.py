"""Muon: momentum whose matrix is orthogonalised before each step, in whatever precision the device is fast in."""

from __future__ import annotations

import math
from collections.abc import Iterable
from itertools import groupby

import torch
from jaxtyping import Float
from torch import Tensor, nn

# Coefficients of the quintic iteration (Jordan 2024): steep at zero, so that five steps suffice.
_A, _B, _C = 3.4445, -4.7750, 2.0315


class Muon(torch.optim.Optimizer):
    """Nesterov momentum, orthogonalised, at the size of one of Adam's steps (Jordan 2024; Liu et al. 2025, equation 4).

    torch.optim.Muon does the same, but always in bfloat16, which a processor without it only imitates, many times
    slower; this one takes the precision, and orthogonalises equal shapes in one batch.

    Args:
        parameters: matrices.
        lr: peak rate; a step of a matrix (n, m) is scaled by 0.2 sqrt(max(n, m)), an Adam step's usual size.
        dtype: precision of the orthogonalisation.
    """

    def __init__(
        self, parameters: Iterable[nn.Parameter], lr: float, momentum: float, weight_decay: float, dtype: torch.dtype
    ) -> None:
        super().__init__(parameters, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})
        self._dtype = dtype

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]  # without a closure
        """W <- (1 - lr weight_decay) W - 0.2 lr sqrt(max(n, m)) O, with O the orthogonalised momentum of W."""
        for group in self.param_groups:
            trained = sorted((p for p in group["params"] if p.grad is not None), key=lambda p: tuple(p.shape))
            for shape, same_shape in groupby(trained, key=lambda p: tuple(p.shape)):
                parameters = list(same_shape)
                momenta = torch.stack([self._momentum(p, group["momentum"]) for p in parameters])
                size = group["lr"] * 0.2 * math.sqrt(max(shape))
                for p, update in zip(parameters, orthogonalise(momenta.to(self._dtype)), strict=True):
                    p.mul_(1 - group["lr"] * group["weight_decay"]).add_(update.to(p.dtype), alpha=-size)

    def _momentum(self, p: Tensor, momentum: float) -> Tensor:
        """Nesterov momentum."""
        state, grad = self.state[p], p.grad
        assert grad is not None
        if "momentum" not in state:
            state["momentum"] = torch.zeros_like(p)
        state["momentum"].lerp_(grad, 1 - momentum)
        return grad.lerp(state["momentum"], momentum)


def orthogonalise(G: Float[Tensor, "batch n m"], steps: int = 5) -> Float[Tensor, "batch n m"]:
    """Roughly U V^T of each G = U S V^T, by Newton-Schulz: X <- a X + b (X X^T) X + c (X X^T)^2 X.

    Singular values end between about 0.7 and 1.2, which serves an optimiser as well as ones (Jordan 2024).
    """
    tall = G.shape[-2] > G.shape[-1]
    X = G.mT if tall else G  # the smaller Gram matrix
    X = X / X.norm(dim=(-2, -1), keepdim=True).clamp(min=1e-7)
    for _ in range(steps):
        gram = X @ X.mT
        X = torch.baddbmm(X, torch.baddbmm(gram, gram, gram, beta=_B, alpha=_C), X, beta=_A)
    return X.mT if tall else X
