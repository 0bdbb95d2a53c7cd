"""Attention without a softmax: linear in its values, with a state of fixed size and an exact, signed, causal map.

An operator has three forms that agree, a recurrence, chunks, and a matrix; below it are the published rules.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import TypeAlias

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from viz_core.attention.masking import length_mask
from viz_core.trace.arguments import can_be_read, check_axes, check_device, check_tensors, check_whole, described

__all__ = [
    "LinearOperator",
    "delta_rule",
    "elu_features",
    "gated_decay",
    "gated_delta_rule",
    "linear_attention",
    "retention",
    "retention_decay",
]

Linear: TypeAlias = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class LinearOperator:
    """What queries, keys and gates do to any values: o = A v, one state S of shape (d, v) for each head.

    S_t = a_t S_(t-1) + k_t w_t^T,  o_t = S_t^T q_t,  with a_t = exp(log_decay_t) and

    - w_t = b_t v_t, which adds, or
    - w_t = b_t (v_t - a_t S_(t-1)^T k_t) if it erases: what the state returned for k_t is removed first.

    b_t is `strength`. If it normalises, o_t is divided by the same sum of ones, q_t . sum_(s <= t) k_s.

    Half precision is computed in float32; outputs have the type of the values, maps and states are float32.

    Args:
        queries, keys: (batch, heads, n, d), after any feature map, scale or normalisation.
        log_decay: (batch, heads, n), at most 0; None means 0, no decay.
        strength: (batch, heads, n); None means 1.

    Raises:
        ValueError: if shapes, types or devices differ, there is no token, log_decay is above 0, or a gate is not
            finite. Every form raises it for values of another shape or type.
    """

    queries: Float[Tensor, "batch heads n d"]
    keys: Float[Tensor, "batch heads n d"]
    log_decay: Float[Tensor, "batch heads n"] | None = None
    strength: Float[Tensor, "batch heads n"] | None = None
    erases: bool = False
    normalises: bool = False

    def __post_init__(self) -> None:
        check_tensors(queries=self.queries, keys=self.keys)
        check_axes("batch heads n d", queries=self.queries, keys=self.keys)
        if self.queries.shape != self.keys.shape or not self.keys.shape[2]:
            raise ValueError(
                "expected queries and keys of one shape with at least one token, "
                f"got {tuple(self.queries.shape)} and {tuple(self.keys.shape)}"
            )
        for name, gate, most in (("log_decay", self.log_decay, 0.0), ("strength", self.strength, torch.inf)):
            if gate is not None:
                self._check_gate(name, gate, most)

    def _check_gate(self, name: str, gate: Tensor, most: float) -> None:
        check_tensors(**{name: gate})
        check_device(keys=self.keys, **{name: gate})
        if gate.shape != self.keys.shape[:3]:
            raise ValueError(f"{name}: expected shape {tuple(self.keys.shape[:3])}, got {tuple(gate.shape)}")
        if can_be_read(gate) and not (gate.isfinite().all() and gate.max() <= most):
            bound = "" if most == torch.inf else " of at most 0"
            raise ValueError(
                f"{name}: expected finite numbers{bound}, got {float(gate.min()):g} to {float(gate.max()):g}"
            )

    def masked(self, valid: Bool[Tensor, "batch n"] | Int[Tensor, " batch"] | None) -> "LinearOperator":
        """Return the operator in which padding tokens neither write, erase nor decay.

        Args:
            valid: True where there is a token, wherever the padding is; or one valid length for each batch row.

        Raises:
            ValueError: if there is no number or boolean for each; one state cannot serve a length for each query.
        """
        if valid is None:
            return self
        batch, _, n, _ = self.keys.shape
        check_device(keys=self.keys, valid=valid)
        if not isinstance(valid, Tensor) or valid.dtype != torch.bool:
            if isinstance(valid, Tensor) and valid.dim() > 1:
                raise ValueError(f"valid_lens: expected one length for each batch row, got {described(valid)}")
            valid = length_mask(valid, batch, n, n)[:, 0]
        if valid.shape != (batch, n):
            raise ValueError(f"mask: expected shape {(batch, n)}, got {tuple(valid.shape)}")
        padding = ~valid[:, None]
        strength = torch.ones_like(self.keys[..., 0]) if self.strength is None else self.strength
        return replace(
            self,
            keys=self.keys.masked_fill(padding[..., None], 0.0),
            strength=strength.masked_fill(padding, 0.0),
            log_decay=None if self.log_decay is None else self.log_decay.masked_fill(padding, 0.0),
        )

    def recurrent(self, values: Float[Tensor, "batch heads n v"]) -> Float[Tensor, "batch heads n v"]:
        """Return the outputs token by token: n steps of d v multiplications, with a state of d v numbers."""
        return self._finish(values, self._recurrence)

    def states(self, values: Float[Tensor, "batch heads n v"]) -> Float[Tensor, "batch heads n d v"]:
        """Return the state after each token; a ValueError tells of values that do not fit."""
        return torch.stack(list(self._steps(self._checked(values))), dim=2)

    def chunked(self, values: Float[Tensor, "batch heads n v"], size: int = 64) -> Float[Tensor, "batch heads n v"]:
        """Return the outputs chunk by chunk: matrices within a chunk, a state between chunks.

        Within a chunk w solves (I + L) w = b (v - g S^T k), with g_t the decay since the chunk began, S the state at
        its start and L_ts = b_t (g_t / g_s) k_t . k_s for s < t where the rule erases, else 0 (Yang 2024, section 3.3).

        Raises:
            ValueError: if size < 1.
        """
        check_whole(size=size)
        return self._finish(values, lambda v: self._chunks(v, size))

    def map(self) -> Float[Tensor, "batch heads n n"]:
        """Return A, signed and causal, with A @ values equal to the outputs: one chunk of all tokens.

        A = (Q K^T * G) (I + L)^-1 diag(b), with G_ts = g_t / g_s for s <= t, else 0.
        """
        queries, keys, decay, strength = self._numbers()
        within, solve = self._chunk(queries, keys, decay, strength)
        weights = within @ solve(torch.diag_embed(strength))
        return _divided(weights, weights.sum(dim=-1, keepdim=True)) if self.normalises else weights

    @property
    def _working(self) -> torch.dtype:
        return torch.promote_types(self.keys.dtype, torch.float32)

    def _numbers(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Queries, keys, log decay and strength, in a type that can sum them."""
        queries, keys = self.queries.to(self._working), self.keys.to(self._working)
        decay = torch.zeros_like(keys[..., 0]) if self.log_decay is None else self.log_decay.to(self._working)
        return queries, keys, decay, torch.ones_like(decay) if self.strength is None else self.strength.to(decay)

    def _checked(self, values: Tensor) -> Tensor:
        check_tensors(keys=self.keys, values=values)
        check_axes("batch heads n v", values=values)
        if values.shape[:3] != self.keys.shape[:3]:
            raise ValueError(f"values: expected shape {(*self.keys.shape[:3], 'v')}, got {tuple(values.shape)}")
        return values.to(self._working)

    def _finish(self, values: Tensor, form: Linear) -> Tensor:
        numbers = self._checked(values)
        if not self.normalises:
            return form(numbers).to(values.dtype)
        total = form(torch.cat([numbers, torch.ones_like(numbers[..., :1])], dim=-1))
        return _divided(total[..., :-1], total[..., -1:]).to(values.dtype)

    def _steps(self, values: Tensor) -> Iterator[Tensor]:
        _, keys, decay, strength = self._numbers()
        state = keys.new_zeros(*keys.shape[:2], keys.shape[-1], values.shape[-1])
        for k, v, a, b in zip(*(each.unbind(2) for each in (keys, values, decay.exp(), strength)), strict=True):
            state = a[..., None, None] * state
            new = v - (k[..., None, :] @ state)[..., 0, :] if self.erases else v
            state = state + k[..., :, None] * (b[..., None] * new)[..., None, :]
            yield state

    def _recurrence(self, values: Tensor) -> Tensor:
        queries = self.queries.to(self._working).unbind(2)
        outputs = [q[..., None, :] @ state for q, state in zip(queries, self._steps(values), strict=True)]
        return torch.stack(outputs, dim=2)[..., 0, :]

    def _chunk(self, queries: Tensor, keys: Tensor, decay: Tensor, strength: Tensor) -> tuple[Tensor, Linear]:
        """Q K^T * G of one chunk, and (I + L)^-1."""
        since = decay.cumsum(dim=-1)
        later = torch.ones(keys.shape[2], keys.shape[2], dtype=torch.bool, device=keys.device).triu(1)
        ratios = (since[..., :, None] - since[..., None, :]).masked_fill(later, -torch.inf).exp()
        if not self.erases:
            return queries @ keys.mT * ratios, lambda right: right
        lower = (strength[..., None] * (keys @ keys.mT) * ratios).tril(-1)
        return queries @ keys.mT * ratios, lambda right: torch.linalg.solve_triangular(
            lower, right, upper=False, unitriangular=True
        )

    def _chunks(self, values: Tensor, size: int) -> Tensor:
        queries, keys, decay, strength = self._numbers()
        state = keys.new_zeros(*keys.shape[:2], keys.shape[-1], values.shape[-1])
        outputs = []
        for q, k, v, a, b in zip(
            *(each.split(size, dim=2) for each in (queries, keys, values, decay, strength)), strict=True
        ):
            since = a.cumsum(dim=-1)[..., None]
            within, solve = self._chunk(q, k, a, b)
            written = solve(b[..., None] * (v - since.exp() * (k @ state) if self.erases else v))
            outputs.append(since.exp() * (q @ state) + within @ written)
            remaining = (since[..., -1:, :] - since).exp()
            state = since[..., -1:, :].exp() * state + (remaining * k).mT @ written
        return torch.cat(outputs, dim=2)


def _divided(numbers: Tensor, total: Tensor) -> Tensor:
    """Quotients; 0 where nothing was summed."""
    return torch.where(total == 0, 0.0, numbers / torch.where(total == 0, 1.0, total))


def retention_decay(num_heads: int) -> Float[Tensor, " heads"]:
    """Return each head's decay 1 - 2^(-5 - h), h = 0, 1, ... (RetNet: Sun 2023, equation 8).

    Raises:
        ValueError: if num_heads < 1.
    """
    check_whole(num_heads=num_heads)
    return 1 - torch.exp2(-5.0 - torch.arange(num_heads))


def retention(
    queries: Float[Tensor, "batch heads n d"],
    keys: Float[Tensor, "batch heads n d"],
    decay: Float[Tensor, " heads"] | None = None,
    valid_lens: Int[Tensor, " batch"] | None = None,
) -> LinearOperator:
    """Retention: S_t = g S_(t-1) + k_t v_t^T, so A_ts = g^(t-s) q_t . k_s (RetNet: Sun 2023, equation 5).

    The paper also rotates queries and keys and normalises each head; both are up to the caller.

    Args:
        decay: g of each head, above 0 and at most 1; `retention_decay` by default.
        valid_lens: one length for each batch row; later tokens write nothing.

    Raises:
        ValueError: if there is no decay in that range for each head.
    """
    check_tensors(keys=keys)
    check_axes("batch heads n d", keys=keys)
    heads = keys.shape[1]
    decay = retention_decay(heads).to(keys.device) if decay is None else decay
    check_tensors(decay=decay)
    if decay.shape != (heads,):
        raise ValueError(f"decay: expected one for each of {heads} heads, got shape {tuple(decay.shape)}")
    if can_be_read(decay) and not ((decay > 0) & (decay <= 1)).all():
        raise ValueError(f"decay: expected numbers above 0 and at most 1, got {decay.tolist()}")
    return LinearOperator(queries, keys, decay.log()[None, :, None].expand(keys.shape[:3])).masked(valid_lens)


def gated_decay(
    queries: Float[Tensor, "batch heads n d"],
    keys: Float[Tensor, "batch heads n d"],
    log_decay: Float[Tensor, "batch heads n"],
    strength: Float[Tensor, "batch heads n"] | None = None,
    valid_lens: Int[Tensor, " batch"] | None = None,
) -> LinearOperator:
    """Gated decay: S_t = a_t S_(t-1) + b_t k_t v_t^T, a_t = exp(log_decay_t) (Mamba-2: Dao 2024).

    In Mamba-2's names: queries C, keys B, values x, log_decay = step * A and strength = step.

    Args:
        log_decay: at most 0, from the token.
        valid_lens: one length for each batch row; later tokens neither write nor decay.
    """
    return LinearOperator(queries, keys, log_decay, strength).masked(valid_lens)


def delta_rule(
    queries: Float[Tensor, "batch heads n d"],
    keys: Float[Tensor, "batch heads n d"],
    strength: Float[Tensor, "batch heads n"],
    valid_lens: Int[Tensor, " batch"] | None = None,
) -> LinearOperator:
    """Delta rule: S_t = S_(t-1) + b_t k_t (v_t - S_(t-1)^T k_t)^T (DeltaNet: Schlag 2021).

    With a key of length 1 and b_t = 1 the state then returns v_t for k_t exactly; b_t = 0 writes nothing.

    Args:
        keys: usually of length 1; the state grows without bound where b_t |k_t|^2 > 2.
        strength: b_t, usually 0 to 1.
        valid_lens: one length for each batch row; later tokens neither erase nor write.
    """
    return LinearOperator(queries, keys, None, strength, erases=True).masked(valid_lens)


def gated_delta_rule(
    queries: Float[Tensor, "batch heads n d"],
    keys: Float[Tensor, "batch heads n d"],
    log_decay: Float[Tensor, "batch heads n"],
    strength: Float[Tensor, "batch heads n"],
    valid_lens: Int[Tensor, " batch"] | None = None,
) -> LinearOperator:
    """Gated delta rule: S_t = a_t (I - b_t k_t k_t^T) S_(t-1) + b_t k_t v_t^T (Gated DeltaNet: Yang 2024, equation 10).

    The rule of Qwen3-Next and Qwen3.5, which divide keys and queries by their lengths and queries by sqrt(d) too.

    Args:
        log_decay: log a_t, at most 0.
        strength: b_t, usually 0 to 1.
        valid_lens: one length for each batch row; later tokens neither decay, erase nor write.
    """
    return LinearOperator(queries, keys, log_decay, strength, erases=True).masked(valid_lens)


def elu_features(x: Float[Tensor, "*batch d"]) -> Float[Tensor, "*batch d"]:
    """Return elu(x) + 1, positive features: x + 1 for x > 0, else exp(x) (Katharopoulos 2020, equation 7)."""
    check_tensors(x=x)
    return F.elu(x) + 1


def linear_attention(
    queries: Float[Tensor, "batch heads n d"],
    keys: Float[Tensor, "batch heads n d"],
    valid_lens: Int[Tensor, " batch"] | None = None,
    *,
    normalise: bool = True,
) -> LinearOperator:
    """Causal attention with the similarity phi(q) . phi(k), phi = elu + 1 (Katharopoulos 2020, equations 10 to 12).

    S_t = S_(t-1) + phi(k_t) v_t^T,  z_t = z_(t-1) + phi(k_t),  o_t = S_t^T phi(q_t) / (z_t . phi(q_t))

    Args:
        valid_lens: one length for each batch row; later tokens write nothing.
        normalise: divide by z_t . phi(q_t), so that the rows of the map sum to 1. Later models leave it out.
    """
    operator = LinearOperator(elu_features(queries), elu_features(keys), normalises=normalise)
    return operator.masked(valid_lens)
