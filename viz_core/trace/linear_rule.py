"""Linear attention: signed maps in closed form, A with output = A V, of rules that are linear in their values."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from viz_core.trace.source import Projected

_CHUNK = 64


@dataclass(frozen=True, eq=False)
class LinearRule(Projected):
    """A state S that decays, and to which each token adds its value under its key; a query reads it.

    S_j = exp(g_j) S_(j-1) + s_j k_j (v_j - e exp(g_j) S_(j-1)^T k_j)^T and o_i = scale S_i^T q_i + D v_i, where e = 1
    for a rule that erases what is stored under a key before it writes (gated delta rule; Yang 2024, "Gated delta
    networks"), and e = 0 for others (state-space duality; Dao 2024; lightning attention; Qin 2024). Without erasing,
    A_ij = scale q_i . k_j exp(g_(j+1) + ... + g_i) s_j for j <= i, plus D where i = j. In Kimi Delta Attention (2025)
    g_j is a vector: each channel of the keys decays at its own rate. In an mLSTM (Beck 2024, "xLSTM") s_j = exp(i_j),
    and each row is divided by max(|its sum|, 1) + eps exp(m_i), m_i = max(0, max_j(i_j - g_1 - ... - g_j)) + g_1 + ...
    + g_i: the largest exponent up to there.
    """

    queries: Float[Tensor, "batch groups queries d"]
    keys: Float[Tensor, "batch groups keys d"]
    values: Float[Tensor, "batch heads keys v"] | None = None
    rule: str = ""  # its name
    # g_j of each value head, at most 0; with a fourth axis, of each channel of its keys
    log_decay: Float[Tensor, "#batch heads keys *channels"] | None = None
    strength: Float[Tensor, "batch heads keys"] | None = None  # s_j; None for 1
    skip: Float[Tensor, " heads"] | None = None  # D of each value head; None for 0
    erases: bool = False  # e
    normalised: bool = False  # whether queries and keys are divided by their lengths first
    eps: float | None = None  # of an mLSTM; None where rows are not divided
    is_changed: bool = True  # a norm and a gate follow every such rule; until they are recorded as `gate`
    signed: ClassVar[bool] = True

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Batch, heads of values, queries and keys; heads of queries and keys may be fewer."""
        assert self.log_decay is not None
        batch, _, num_queries, _ = self.queries.shape
        return batch, self.log_decay.shape[1], num_queries, self.keys.shape[2]

    def rows(self, heads: slice, queries: slice) -> Float[Tensor, "batch some_heads rows keys"]:
        """Return the weights of these heads and queries over all keys, 0 where an edit cuts them.

        Keys are visited backwards in chunks, with what each query still reads of the state before them: the cost is
        that of these rows alone. ValueError if what was recorded has been changed in place since.
        """
        self.check_unchanged()
        found = self._weights(heads, queries, None)
        if self.edits is not None:
            edited = self.edits.edit_scores(torch.zeros_like(found), range(self.shape[1])[heads], queries)
            found = found.masked_fill(edited == -torch.inf, 0)
        return found.float()

    def _weights(  # type: ignore[override]
        self,
        heads: slice,
        queries: slice,
        edit: Callable[[Tensor], Tensor] | None,  # noqa: ARG002
    ) -> Tensor:
        Q, K = self._of_heads(self.queries[:, :, queries], heads) * self.scale, self._of_heads(self.keys, heads)
        at = torch.arange(self.shape[2], device=Q.device)[queries]
        assert self.log_decay is not None
        G = self.log_decay[:, heads].to(Q).cumsum(dim=2)
        G = G if G.dim() == 4 else G[..., None]
        s = G.new_ones(G.shape[:3]) if self.strength is None else self.strength[:, heads].to(Q)
        weights = Q.new_zeros(*Q.shape[:3], self.shape[3])
        first, last = (int(at[0]), int(at[-1]) + 1) if len(at) else (0, 0)
        size = _CHUNK if self.erases else 32 * _CHUNK
        for start in reversed(range(0, last, size)):
            own = slice(start, min(start + size, last))
            if first >= own.stop - 1:  # all rows come after: one decay for each key, up to the end of the chunk
                read = Q @ (K[:, :, own] * (G[:, :, own.stop - 1, None] - G[:, :, own]).exp()).mT
            else:
                past = torch.arange(own.start, own.stop, device=Q.device) <= at[:, None]
                read = _decayed_products(Q, K[:, :, own], G[:, :, at.clamp(max=own.stop - 1)], G[:, :, own], past)
            if self.erases:
                past = torch.ones(own.stop - own.start, own.stop - own.start, device=Q.device).tril().bool()
                stored = K[:, :, own] * s[..., own, None]
                erased = _decayed_products(stored, K[:, :, own], G[:, :, own], G[:, :, own], past)
                read = torch.linalg.solve_triangular(erased, read, upper=False, left=False, unitriangular=True)
            weights[..., own] = read * s[..., None, own]
            if start:
                before = G[:, :, start - 1, None]
                Q = (G[:, :, at.clamp(start - 1, own.stop - 1)] - before).exp() * Q
                if self.erases:
                    Q = Q - weights[..., own] @ (K[:, :, own] * (G[:, :, own] - before).exp())
                if not bool(Q.any()):  # all of it has decayed
                    break
        if self.eps is not None:
            exponents = G[..., 0] + (s.log() - G[..., 0]).cummax(dim=2).values.clamp(min=0)
            divisor = weights.sum(dim=-1).abs().clamp(min=1) + self.eps * exponents[:, :, at].exp()
            weights = weights / divisor[..., None]
        if self.skip is not None:
            weights[..., range(len(at)), at] += self.skip[heads, None].to(Q)
        return weights

    def _of_heads(self, tensor: Tensor, heads: slice) -> Float[Tensor, "batch some_heads n d"]:
        """Return queries or keys of these heads of values, wide enough that rounding is the layer's alone."""
        group = self.shape[1] // tensor.shape[1]
        wide = torch.float32 if tensor.device.type == "mps" else torch.float64
        own = tensor[:, torch.arange(heads.start, heads.stop, device=tensor.device) // group].to(wide)
        return own * (own.square().sum(dim=-1, keepdim=True) + 1e-6).rsqrt() if self.normalised else own


def _decayed_products(
    Q: Float[Tensor, "batch heads rows d"],
    K: Float[Tensor, "batch heads some_keys d"],
    decay_of_queries: Float[Tensor, "#batch heads rows channels"],
    decay_of_keys: Float[Tensor, "#batch heads some_keys channels"],
    past: Bool[Tensor, "rows some_keys"],
) -> Float[Tensor, "batch heads rows some_keys"]:
    """Return sum_c Q_ic K_jc exp(G_ic - G_jc) where j is in the past of i, else 0; with one decay, or one a channel."""
    if decay_of_keys.shape[-1] == 1:
        return Q @ K.mT * (decay_of_queries - decay_of_keys.mT).masked_fill(~past, -torch.inf).exp()
    columns = [  # one key at a time: all of them at once would take the memory of d maps
        (Q * (decay_of_queries - own[:, :, None]).clamp(max=0).exp() * key[:, :, None]).sum(dim=-1)
        for key, own in zip(K.unbind(dim=2), decay_of_keys.unbind(dim=2), strict=True)
    ]
    return torch.stack(columns, dim=-1) * past
