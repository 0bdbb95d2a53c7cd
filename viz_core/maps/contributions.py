"""Contribution of each key to a layer's output: its value through the output projection, times its weight."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from viz_core.trace import AttentionCall
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
