"""Contribution of each key to a layer's output: its value through the output projection, times its weight.

Its norm, or its share of a row, takes the place of the weight in a trace.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn

from viz_core.models.anatomy import hands_on_values, output_projection
from viz_core.trace import AttentionCall, Source, Trace
from viz_core.trace.arguments import index_range
from viz_core.trace.one_text import OneText
from viz_core.trace.source import Projected


@torch.no_grad()
def contribution_norms(call: AttentionCall, W_o: nn.Module | None) -> Float[Tensor, "batch heads queries keys"]:
    """Norm |a_ij W_o^h v_j| of the vector that key j adds to output i by head h (Kobayashi 2020).

    The layer's output without its bias is the sum of these vectors, `contribution_sum`. A key with a large weight and
    a short vector adds little: BERT's heads that look at separators do that. Where a gate g_i multiplies what the heads
    write (Qwen3-Next), v_j is g_i v_j throughout, with the gate as it was. Linear attention is followed by a norm and a
    gate, whose factors together are g_i.

    Args:
        call: recorded by `record(values=True)`.
        W_o: the layer's output projection; W_o^h are its columns for head h. None where one head hands on
            sum_j a_ij v_j as it is, as additive attention does: then |a_ij v_j|.

    Returns:
        At least 0, float32 on the CPU.

    Raises:
        ValueError: if the call kept no values, W_o is not as wide as its heads together, several heads have none, or
            the layer changes what its heads write before it is projected, but by a gate.
    """
    lengths = value_lengths(call, W_o)
    return call.weights().abs() * (lengths if lengths.dim() == 4 else lengths[:, :, None])


@torch.no_grad()
def value_lengths(call: AttentionCall, W_o: nn.Module | None) -> Float[Tensor, "batch heads *queries keys"]:
    """Norm |W_o^h v_j| of the vector that a key would add with weight 1, for each head, and each query with a gate."""
    if _gate(call) is not None:
        rows = [[each.norm(dim=-1) for each in _added(call, W_o, i)] for i in range(call.num_queries)]
        return torch.stack([torch.stack(row, dim=1) for row in rows], dim=2)
    return torch.stack([vectors.norm(dim=-1) for vectors in _added(call, W_o)], dim=1)


@torch.no_grad()
def contribution_vectors(
    call: AttentionCall, W_o: nn.Module | None, query: int, head: int | None = None
) -> Float[Tensor, "batch keys d"]:
    """Vectors a_ij W_o^h v_j that the keys add to one query i, by one head or by all heads together.

    Raises:
        ValueError: as `contribution_norms`.
        IndexError: if there is no such query or head.
    """
    row = index_range(query, call.num_queries, "query")[0]
    vectors, weights = _added(call, W_o, row), call.weights(queries=row)
    heads = index_range(head, call.num_heads, "head")
    return torch.stack([weights[:, h, :, None] * vectors[h] for h in heads]).sum(dim=0)


@torch.no_grad()
def contribution_sum(call: AttentionCall, W_o: nn.Module | None) -> Float[Tensor, "batch queries d"]:
    """Sum over heads h and keys j of a_ij W_o^h v_j: the layer's output without its bias."""
    if _gate(call) is not None:
        return torch.stack([contribution_vectors(call, W_o, i).sum(dim=1) for i in range(call.num_queries)], dim=1)
    parts = [call.weights(head=h) @ vectors for h, vectors in enumerate(_added(call, W_o))]
    return torch.stack(parts).sum(dim=0)


def _gate(call: AttentionCall) -> Float[Tensor, "batch heads queries v"] | None:
    return getattr(call.source, "gate", None) if isinstance(call, AttentionCall) else None


def _added(call: AttentionCall, W_o: nn.Module | None, query: int = 0) -> list[Float[Tensor, "batch keys d"]]:
    """W_o^h v_j of each head h, with the values of its group, times what its edits and the query's gate factor."""
    if not isinstance(call, AttentionCall):
        raise ValueError(f"call: expected a recorded attention call, got {type(call).__name__}")
    values = call.values.float().cpu()
    group = call.num_heads // values.shape[1]
    of_heads = [values[:, h // group] for h in range(call.num_heads)]
    if getattr(call.source, "is_changed", False):
        raise ValueError(
            f"site {call.site!r}: expected a layer that projects what its heads write, or multiplies it by a gate "
            "first, got one that changes it in another way"
        )
    gate = _gate(call)
    if gate is not None:
        of_heads = [own * gate[:, h, query, None].float().cpu() for h, own in enumerate(of_heads)]
    if isinstance(call.source, Projected | OneText):
        of_heads = [own * call.source.value_factor(h)[:, None, None] for h, own in enumerate(of_heads)]
    if W_o is None and call.num_heads == 1:
        return of_heads
    expected = call.num_heads * values.shape[-1]
    weight = _weight(W_o)
    if weight is None or weight.shape[1] != expected:
        came = type(W_o).__name__ if weight is None else f"{weight.shape[1]} inputs"
        raise ValueError(f"W_o: expected an nn.Linear with {expected} inputs, got {came}")
    return [own @ W.T for own, W in zip(of_heads, weight.float().cpu().chunk(call.num_heads, dim=1), strict=True)]


def _weight(W_o: nn.Module | None) -> Float[Tensor, "d inputs"] | None:
    """Return the matrix of a linear layer, also with adapters (LoRA) or quantised weights; None of others.

    GPT-2's `Conv1D` stores it transposed. Of a layer of another class it is what the layer makes of each unit vector.
    """
    if not isinstance(W_o, nn.Module):
        return None
    if type(W_o) is nn.Linear or type(W_o).__name__ == "Conv1D":
        weight: Tensor = W_o.weight  # type: ignore[assignment]
        return weight if isinstance(W_o, nn.Linear) else weight.T
    inputs, known = getattr(W_o, "in_features", None), next(W_o.parameters(), torch.empty(0))
    if not isinstance(inputs, int):
        return None
    dtype = known.dtype if known.is_floating_point() else torch.float32
    unit, nothing = torch.eye(inputs, device=known.device, dtype=dtype), torch.zeros(1, inputs).to(known.device, dtype)
    bias = W_o(nothing)
    matrix: Tensor = (W_o(unit) - bias).T
    tried = torch.linspace(-1, 1, inputs, device=known.device, dtype=dtype)[None]
    off = (W_o(tried) - bias - tried @ matrix.T).abs().max()
    if not off <= 1e-3 * matrix.abs().sum(dim=1).max():
        raise ValueError(f"W_o: expected a layer that is linear, got {type(W_o).__name__}, which rounds its inputs")
    return matrix


ContributionKind = Literal["", "carried", "lengths"]
"""What maps show: weights, each key's share of the norms that a head adds to a query, or these norms on one scale."""


@dataclass(frozen=True, eq=False)
class ContributionShares:
    """Source of |a_ij W_o^h v_j| / sum_k |a_ik W_o^h v_k|, of signed maps too: each key's vector is measured once.

    With a `unit`, the source of |a_ij W_o^h v_j| / unit, which can be compared between rows, heads and layers.
    """

    weights: Source
    lengths: Float[Tensor, "batch heads *queries keys"]  # for each query where the layer has a gate
    unit: float | None = None

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Batch, heads, queries and keys."""
        return self.weights.shape

    def tensors(self) -> list[Tensor]:
        """The tensors that are stored."""
        return [self.lengths, *self.weights.tensors()]

    def rows(self, heads: slice, queries: slice) -> Float[Tensor, "batch some_heads rows keys"]:
        """Shares or lengths of these heads and queries over all keys; zeros where the norms are all 0."""
        lengths = self.lengths[:, heads, queries] if self.lengths.dim() == 4 else self.lengths[:, heads, None]
        added = self.weights.rows(heads, queries).float().abs() * lengths
        if self.unit is not None:
            return added / self.unit
        return added / added.sum(dim=-1, keepdim=True).clamp_min(torch.finfo(added.dtype).tiny)


@torch.no_grad()
def contribution_shares(trace: Trace, model: nn.Module) -> Trace:
    """Trace whose maps are each key's share of the norms that a head adds to a query.

    Each row sums to 1 as one of weights does, so that the two can be compared cell by cell (Kobayashi 2020).

    Args:
        trace: recorded with values, by `record(values=True)` or within `recording_values()`.
        model: whose output projections are found by the sites of its layers.

    Raises:
        ValueError: if a call kept no values, or its layer's output projection is not found.
    """
    found = Trace()
    for call in trace:
        W_o = None if hands_on_values(model, call.site) else output_projection(model, call.site)
        found.add(shares_of_call(call, W_o).source, call.site)
    return found


def longest(lengths: Iterable[Tensor]) -> float:
    """The longest of all vectors, above 0."""
    tiny = torch.finfo(torch.float32).tiny
    return max((float(each.max()) for each in lengths if each.numel()), default=tiny) or tiny


@torch.no_grad()
def shares_of_call(call: AttentionCall, W_o: nn.Module | None, in_lengths: bool = False) -> AttentionCall:
    """Call whose maps are shares of norms, from its layer's output projection, if it has one.

    Args:
        in_lengths: norms on the scale of this call instead of shares.
    """
    lengths = value_lengths(call, W_o).to(next(iter(call.source.tensors())).device)
    unit = longest([lengths]) if in_lengths else None
    return AttentionCall(call.site, ContributionShares(call.source, lengths, unit))


@torch.no_grad()
def contribution_lengths(trace: Trace, model: nn.Module) -> Trace:
    """Trace whose maps are norms |a_ij W_o^h v_j|, divided by the longest |W_o^h v_j| of all heads and layers: 0 to 1.

    A row's sum says how much a head adds to that query at most; shares hide that (Kobayashi 2020).

    Raises:
        ValueError: as `contribution_shares`.
    """
    shares = contribution_shares(trace, model)
    sources = [call.source for call in shares if isinstance(call.source, ContributionShares)]
    unit = longest([source.lengths for source in sources])
    found = Trace()
    for call, source in zip(shares, sources, strict=True):
        found.add(replace(source, unit=unit), call.site)
    return found
