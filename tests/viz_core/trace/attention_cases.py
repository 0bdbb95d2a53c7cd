"""Attention of every kind, small, and its weights by brute force."""

import math
from typing import Any

import torch
from torch import Tensor

from viz_core.trace import AttentionCall, attend, record

B, H, Q, K, D, V = 2, 4, 7, 9, 5, 6


def brute_force(
    queries: Tensor,
    keys: Tensor,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    causal: bool = False,
    scale: float | None = None,
    softcap: float | None = None,
) -> Tensor:
    batch, heads, num_queries, d = queries.shape
    key_heads, num_keys = keys.shape[1:3]
    scale = 1 / math.sqrt(d) if scale is None else scale
    shape = (batch, heads, num_queries, num_keys)
    allowed = torch.ones(shape, dtype=torch.bool) if mask is None else mask.expand(shape)
    added = torch.zeros(shape) if bias is None else bias.expand(shape)
    weights = torch.zeros(shape, dtype=torch.float64)
    for b in range(batch):
        for h in range(heads):
            for i in range(num_queries):
                k = keys[b, h * key_heads // heads]
                last = i + num_keys - num_queries if causal else num_keys - 1
                seen = [j for j in range(num_keys) if j <= last and allowed[b, h, i, j]]
                products = {j: float(queries[b, h, i].double() @ k[j].double()) for j in seen}
                scores = {j: scale * product for j, product in products.items()}
                if softcap is not None:
                    scores = {j: softcap * math.tanh(score / softcap) for j, score in scores.items()}
                powers = {j: math.exp(score + float(added[b, h, i, j])) for j, score in scores.items()}
                total = sum(powers.values()) or 1.0
                for j, power in powers.items():
                    weights[b, h, i, j] = power / total
    return weights


def tensors(heads: int = H, key_heads: int = H, num_queries: int = Q, num_keys: int = K) -> tuple[Tensor, ...]:
    draw = torch.Generator().manual_seed(3)
    shapes = [(B, heads, num_queries, D), (B, key_heads, num_keys, D), (B, key_heads, num_keys, V)]
    return tuple(torch.randn(*shape, generator=draw) for shape in shapes)


def random_mask(*shape: int) -> Tensor:
    mask = torch.rand(*shape, generator=torch.Generator().manual_seed(4)) < 0.6
    mask[..., 0] = True
    return mask


def random_bias(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(5))


def with_an_empty_row() -> Tensor:
    mask = random_mask(B, 1, Q, K)
    mask[1, 0, 2] = False
    return mask


CASES: dict[str, tuple[tuple[Tensor, ...], dict[str, Any]]] = {
    "plain": (tensors(), {}),
    "scale": (tensors(), {"scale": 0.3}),
    "grouped": (tensors(key_heads=2), {}),
    "one key head": (tensors(key_heads=1), {"mask": random_mask(B, 1, Q, K)}),
    "causal square": (tensors(num_keys=Q), {"causal": True}),
    "causal, cached keys": (tensors(), {"causal": True}),
    "causal, more queries than keys": (tensors(num_queries=K, num_keys=Q), {"causal": True}),
    "causal, one new step": (tensors(num_queries=1), {"causal": True}),
    "padding": (tensors(), {"mask": random_mask(B, 1, 1, K)}),
    "mask for each head": (tensors(), {"mask": random_mask(1, H, Q, K)}),
    "empty row": (tensors(), {"mask": with_an_empty_row()}),
    "bias": (tensors(), {"bias": random_bias(1, H, Q, K)}),
    "bias for all heads": (tensors(), {"bias": random_bias(B, 1, 1, K)}),
    "bias and mask": (tensors(), {"bias": random_bias(1, H, Q, K), "mask": with_an_empty_row()}),
    "additive mask": (tensors(), {"bias": random_bias(B, 1, Q, K).masked_fill(~with_an_empty_row(), -torch.inf)}),
    "everything": (
        tensors(key_heads=2),
        {"bias": random_bias(1, H, 1, K), "mask": random_mask(B, 1, 1, K), "causal": True, "scale": 0.7},
    ),
    "soft cap": (tensors(), {"softcap": 0.5}),
    "soft cap and everything": (
        tensors(key_heads=2),
        {"bias": random_bias(1, H, Q, K), "mask": with_an_empty_row(), "causal": True, "scale": 0.7, "softcap": 1.5},
    ),
}


def recorded(case: str) -> tuple[AttentionCall, Tensor]:
    (queries, keys, values), options = CASES[case]
    with record() as trace:
        output = attend(queries, keys, values, **options)
    return trace["attention.0"], output
