"""Muon for the matrices of the blocks, Adam for embeddings, norms and biases, and one schedule for both."""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import groupby

import torch
from jaxtyping import Float
from torch import Tensor, nn

from viz_core.runtime.device import fast_precision

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


@torch.no_grad()
def rounded_rows(W: Float[Tensor, "rows columns"]) -> Float[Tensor, "rows columns"]:
    """Each row in whole steps of one power of two, at most 127: 8 bits a number, and float16 holds it exactly.

    The step is 2^(round(log2 r) - 4) with r the root of the row's mean square, so a usual number is of 11 to 23 steps.
    """
    size = W.square().mean(dim=-1, keepdim=True).sqrt().clamp(min=2.0**-20)
    step = torch.exp2(size.log2().round() - 4)
    return (W / step).round().clamp(-127, 127) * step


class Optimizers:
    """Muon (Jordan 2024) on hidden matrices, AdamW on all else, stepped together.

    Muon orthogonalises each matrix's momentum before the step, so every direction of the matrix
    learns at one pace; at an equal number of steps it reaches a lower loss than Adam. Without a rate
    for Muon, AdamW takes the matrices too.

    With `rounded`, the model holds `rounded_rows` of every matrix; the gradient at these moves the exact ones, which
    are kept here (the straight-through estimator, Bengio, Léonard and Courville 2013; BinaryConnect, Courbariaux 2015).
    """

    def __init__(
        self,
        model: nn.Module,
        muon_lr: float | None,
        adam_lr: float,
        weight_decay: float,
        outputs: Sequence[nn.Module] = (),
        rounded: bool = False,
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
        self._model = model
        self._exact: dict[str, Tensor] = {}  # by name, of the matrices that the model holds rounded
        if rounded:
            self._round({name: p.detach().clone() for name, p in model.named_parameters() if p.dim() == 2})

    @torch.no_grad()
    def _round(self, exact: dict[str, Tensor]) -> None:
        self._exact = exact
        for name, matrix in exact.items():
            self._model.get_parameter(name).copy_(rounded_rows(matrix))

    @torch.no_grad()
    def _restore(self) -> None:
        for name, matrix in self._exact.items():
            self._model.get_parameter(name).copy_(matrix)

    def step(self, rate: float, then: Callable[[], None] = lambda: None) -> None:
        """One step at `rate` times the peak rates, clear the gradients, and `then` change the exact weights."""
        self._restore()
        for optimizer, peak in self.parts.values():
            for group in optimizer.param_groups:
                group["lr"] = rate * peak
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)
        then()
        self._round({name: self._model.get_parameter(name).detach().clone() for name in self._exact})

    def state_dict(self) -> dict[str, object]:
        """The state of each optimiser, by its name, and the exact matrices."""
        return {"exact": self._exact, **{name: optimizer.state_dict() for name, (optimizer, _) in self.parts.items()}}

    def load_state_dict(self, state: dict[str, dict[str, object]]) -> None:
        """Go on from what `state_dict` gave."""
        for name, (optimizer, _) in self.parts.items():
            optimizer.load_state_dict(state[name])
        if self._exact:
            self._exact = state["exact"]  # type: ignore[assignment]  # matrices, not states


def learning_rate(progress: float, warm_up: float, decay_from: float) -> float:
    """Fraction of the peak rate at `progress` in [0, 1]: a ramp up, a plateau, a straight line down to 0."""
    return min(1.0, progress / warm_up, max(0.0, (1.0 - progress) / (1.0 - decay_from)))
