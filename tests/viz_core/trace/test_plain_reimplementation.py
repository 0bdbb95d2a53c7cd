"""A random model, batch, padding, precision and edit: all that is computed equals a plain reimplementation.

It runs each text alone, without padding, head by head, in float64, and knows no mask but the causal one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from viz_core.attention import MultiHeadAttention
from viz_core.maps.contributions import contribution_norms, contribution_sum
from viz_core.maps.fingerprints import measure_layer
from viz_core.trace import (
    Edit,
    Trace,
    gate,
    head_outputs,
    intervene,
    knock_out,
    mean,
    name_sites,
    off,
    pattern,
    record,
    sharpen,
    uniform,
    window,
)

WORDS, D, HEADS, LAYERS = 11, 16, 4, 2
WIDTH = D // HEADS
TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-4, torch.float16: 2e-2, torch.bfloat16: 0.15}
MATRIX = torch.rand(6, 6, generator=torch.Generator().manual_seed(3)) + 0.1
EDITS: dict[str, Edit | None] = {
    "none": None,
    "off": off(1),
    "gate": gate(1, -0.7),
    "mean": mean(1, torch.linspace(-1, 1, D).reshape(HEADS, WIDTH)),
    "uniform": uniform(1),
    "sharpen": sharpen(1, 0.4),
    "knock_out": knock_out(1, query=slice(1, None), key=0),
    "first": pattern(1, "first"),
    "previous": pattern(1, "previous"),
    "diagonal": pattern(1, "diagonal"),
    "matrix": pattern(1, MATRIX / MATRIX.sum(dim=-1, keepdim=True)),
    "window": window(1, 2, first=1),
}


class Block(nn.Module):
    def __init__(self, key_heads: int) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(D, HEADS, bias=True, num_key_heads=key_heads)
        self.ln, self.dense = nn.LayerNorm(D), nn.Linear(D, D)


class Model(nn.Module):
    """A pre-norm stack with learned positions, which are given."""

    def __init__(self, key_heads: int, is_causal: bool) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, D), nn.Embedding(9, D)
        self.blocks = nn.ModuleList(Block(key_heads) for _ in range(LAYERS))
        self.head, self.is_causal = nn.Linear(D, WORDS), is_causal
        for weights in self.parameters():
            nn.init.normal_(weights, std=0.4)
        name_sites(self, "encoder")

    def forward(self, ids: Tensor, places: Tensor, tokens: Tensor) -> Tensor:
        X = self.words(ids) + self.places(places)
        for block in self.blocks:
            Y = block.ln(X)
            X = X + block.attention(Y, Y, Y, causal=self.is_causal, mask=tokens[:, None, None])
            X = X + torch.relu(block.dense(X))
        return self.head(X)


@dataclass
class Plain:
    """What one layer does with one text."""

    weights: Tensor  # (heads, n, n)
    outputs: Tensor  # (heads, n, v)
    norms: Tensor  # (heads, n, n)
    written: Tensor  # (n, d), without the projection's bias


def edited_scores(name: str, scores: Tensor) -> Tensor:
    """The scores of the edited head, by loops over queries and keys."""
    n, changed = len(scores), scores.clone()
    for i in range(n):
        for j in range(n):
            if scores[i, j] == -math.inf:
                continue
            if name == "uniform":
                changed[i, j] = 0
            elif name == "sharpen":
                changed[i, j] = scores[i, j] / 0.4
            elif name == "knock_out" and i >= 1 and j == 0:
                changed[i, j] = -math.inf
            elif name in ("first", "previous", "diagonal"):
                target = {"first": 0, "previous": max(i - 1, 0), "diagonal": i}[name]
                changed[i, j] = 0 if j == target else -math.inf
            elif name == "matrix":
                changed[i, j] = math.log(MATRIX[i, j])
            elif name == "window" and abs(i - j) >= 2 and j >= 1:
                changed[i, j] = -math.inf
    return changed


def plain_attention(layer: MultiHeadAttention, Y: Tensor, is_causal: bool, edit: str | None) -> Plain:
    def projected(dense: nn.Linear) -> Tensor:
        return Y @ dense.weight.double().T + dense.bias.double()

    Q, K, V, n = projected(layer.W_q), projected(layer.W_k), projected(layer.W_v), len(Y)
    W_o, found = layer.W_o.weight.double(), []
    group = D // K.shape[1]
    for head in range(HEADS):
        own, shared = slice(head * WIDTH, (head + 1) * WIDTH), head // group
        keys = slice(shared * WIDTH, (shared + 1) * WIDTH)
        scores = Q[:, own] @ K[:, keys].T / WIDTH**0.5
        if is_causal:
            scores = scores.masked_fill(torch.ones(n, n).triu(1).bool(), -math.inf)
        is_edited = edit is not None and head == 1
        weights = (edited_scores(edit, scores) if is_edited else scores).softmax(dim=-1).nan_to_num(0.0)
        if is_edited and edit in ("off", "mean"):
            weights = torch.zeros_like(weights)
        output, factor = weights @ V[:, keys], 1.0
        if is_edited and edit == "gate":
            output, factor = -0.7 * output, 0.7
        if is_edited and edit == "mean":
            output = torch.linspace(-1, 1, D).double().reshape(HEADS, WIDTH)[1].expand(n, -1)
        lengths = (V[:, keys] @ W_o[:, own].T).norm(dim=-1)
        found.append((weights, output, factor * weights * lengths, output @ W_o[:, own].T))
    return Plain(*(torch.stack(each) for each in list(zip(*found, strict=True))[:3]), sum(each[3] for each in found))


def plain_pass(model: Model, ids: Tensor, edit: str | None) -> tuple[Tensor, list[Plain]]:
    X = model.words.weight.double()[ids] + model.places.weight.double()[: len(ids)]
    layers = []
    for number, block in enumerate(model.blocks):
        norm = nn.functional.layer_norm(X, (D,), block.ln.weight.double(), block.ln.bias.double())
        layers.append(plain_attention(block.attention, norm, model.is_causal, edit if number == 1 else None))
        X = X + layers[-1].written + block.attention.W_o.bias.double()
        X = X + torch.relu(X @ block.dense.weight.double().T + block.dense.bias.double())
    return X @ model.head.weight.double().T + model.head.bias.double(), layers


def plain_measures(weights: Tensor) -> dict[str, float]:
    """By the formulas of Shannon, Clark, Voita and Xiao, in Python's numbers."""
    rows, n = weights.tolist(), len(weights)
    found = {
        "entropy": sum(-w * math.log2(w) for row in rows for w in row if w > 0) / n,
        "diagonal": sum(rows[i][i] for i in range(n)) / n,
        "first": sum(row[0] for row in rows) / n,
    }
    return found | ({"previous": sum(rows[i][i - 1] for i in range(1, n)) / (n - 1)} if n > 1 else {})


def check(trace: Trace, row: int, model: Model, expected: list[Plain], edit: str, tolerance: float) -> None:
    for number, plain in enumerate(expected):
        call = trace[f"encoder.{number}.self"]
        own, W_o = call.text(row), model.blocks[number].attention.W_o
        close = {"atol": tolerance, "rtol": tolerance, "check_dtype": False}
        torch.testing.assert_close(own.weights()[0], plain.weights, **close)
        torch.testing.assert_close(head_outputs(own)[0], plain.outputs, **close)
        for head, measured in enumerate(measure_layer(call, row).fingerprints):
            for name, value in plain_measures(plain.weights[head]).items():
                assert measured[name] == pytest.approx(value, abs=3 * tolerance), (name, head)
        if edit == "mean" and number == 1:
            with pytest.raises(ValueError, match="was replaced"):
                contribution_sum(own, W_o)
            continue
        torch.testing.assert_close(contribution_norms(own, W_o)[0], plain.norms, **close)
        torch.testing.assert_close(contribution_sum(own, W_o)[0], plain.written, **close)


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 10_000),
    lengths=st.lists(st.integers(1, 6), min_size=1, max_size=3),
    key_heads=st.sampled_from([1, 2, 4]),
    is_causal=st.booleans(),
    left=st.booleans(),
    dtype=st.sampled_from(list(TOLERANCE)),
    edit=st.sampled_from(list(EDITS)),
)
def test_all_that_is_computed(
    seed: int, lengths: list[int], key_heads: int, is_causal: bool, left: bool, dtype: torch.dtype, edit: str
) -> None:
    torch.manual_seed(seed)
    model = Model(key_heads, is_causal).to(dtype).eval()
    longest = max(lengths) + 1
    places = torch.arange(longest) - (longest - torch.tensor(lengths)[:, None] if left else 0)
    tokens = (places >= 0) & (places < torch.tensor(lengths)[:, None])
    ids = torch.randint(0, WORDS, tokens.shape)
    edits = {} if EDITS[edit] is None else {"encoder.1.self": EDITS[edit]}
    model.requires_grad_(False)
    with record(values=True) as trace, intervene(edits):
        logits = model(ids, places.clamp(0, 8), tokens)
    for row, real in enumerate(tokens):
        expected, layers = plain_pass(model, ids[row][real], edit)
        tolerance = TOLERANCE[dtype] * max(1.0, float(expected.abs().max()))
        torch.testing.assert_close(logits[row][real].double(), expected, atol=tolerance, rtol=TOLERANCE[dtype])
        check(trace, row, model, layers, edit, tolerance)
