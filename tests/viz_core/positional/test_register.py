"""Position schemes: biases by loops, and what every scheme of the register must do, a new one too."""

import math
from collections.abc import Callable
from itertools import chain

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from viz_core.attention import MultiHeadAttention
from viz_core.positional import SCHEMES as ENTRIES
from viz_core.positional import (
    AbsolutePositionEmbedding1d,
    ALiBi,
    PositionScheme,
    RelativePositionEmbedding1d,
    Rotary,
    T5RelativeBias,
)
from viz_core.positional.entry import SchemeEntry, SchemeSizes

HEADS, HEAD_DIM, LENGTH = 4, 6, 9

SCHEMES: dict[str, Callable[[], PositionScheme]] = {
    "none": PositionScheme,
    "rotary": Rotary,
    "rotary-half-split": lambda: Rotary(50.0, interleaved=False),
    "alibi": ALiBi,
    "t5": lambda: T5RelativeBias(HEADS, num_buckets=8, max_distance=6),
    "t5-decoder": lambda: T5RelativeBias(HEADS, num_buckets=5, max_distance=6, bidirectional=False),
    "relative": lambda: RelativePositionEmbedding1d(LENGTH, HEAD_DIM),
    "relative-by-head": lambda: RelativePositionEmbedding1d(LENGTH, HEAD_DIM, HEADS),
    "shaw": lambda: RelativePositionEmbedding1d(LENGTH, HEAD_DIM, max_distance=2),
    "absolute": lambda: AbsolutePositionEmbedding1d(LENGTH, HEAD_DIM),
}


@torch.no_grad()
def bias_by_loops(scheme: PositionScheme, queries: Tensor, num_keys: int) -> Tensor:
    """(batch, heads, queries, keys) in float64; queries are the last of the keys, already turned."""
    batch, heads, num_queries, d = queries.shape
    out = torch.zeros(batch, heads, num_queries, num_keys, dtype=torch.float64)
    for h in range(heads):
        for i in range(num_queries):
            for j in range(num_keys):
                offset = j - (num_keys - num_queries + i)
                out[:, h, i, j] = _entry(scheme, queries[:, h, i].double(), h, heads, j, offset, d)
    return out


def _entry(scheme: PositionScheme, q: Tensor, h: int, heads: int, j: int, offset: int, d: int) -> Tensor | float:
    if isinstance(scheme, ALiBi):  # a number of heads that is a power of two
        return -(2.0 ** (-8 * (h + 1) / heads)) * abs(offset)
    if isinstance(scheme, T5RelativeBias):
        from transformers.models.t5.modeling_t5 import T5Attention  # seconds, and few who import the schemes need it

        sizes = (scheme.bidirectional, scheme.num_buckets, scheme.max_distance)
        bucket = T5Attention._relative_position_bucket(torch.tensor([offset]), *sizes)
        return float(scheme.relative_attention_bias.weight[int(bucket), h])
    if isinstance(scheme, AbsolutePositionEmbedding1d):
        return q @ scheme.weight[j].double() / math.sqrt(d)
    if isinstance(scheme, RelativePositionEmbedding1d):
        table = scheme.weight if scheme.weight.dim() == 2 else scheme.weight[h]
        reach = (len(table) - 1) // 2
        return q @ table[max(-reach, min(reach, offset)) + reach].double() / math.sqrt(d)
    return 0.0


@pytest.mark.parametrize("name", SCHEMES)
@settings(max_examples=25)
@given(num_keys=st.integers(1, LENGTH), taken=st.integers(0, LENGTH - 1), seed=st.integers(0, 99))
def test_bias_by_loops(name: str, num_keys: int, taken: int, seed: int) -> None:
    torch.manual_seed(seed)
    scheme = SCHEMES[name]()
    queries = torch.randn(2, HEADS, max(1, num_keys - taken), HEAD_DIM)
    expected = bias_by_loops(scheme, queries, num_keys)
    bias = scheme.bias(queries, num_keys)
    if bias is None:
        assert expected.abs().max() == 0
    else:
        torch.testing.assert_close(bias.expand_as(expected).double(), expected, atol=1e-5, rtol=0)


NUM_TOKENS, NUM_HIDDENS, NUM_HEADS = 6, 16, 2
SIZES = {
    "shared": SchemeSizes(NUM_TOKENS, NUM_HIDDENS, NUM_HEADS, 2, 3),
    "per head": SchemeSizes(NUM_TOKENS, NUM_HIDDENS, NUM_HEADS, 2, 3, per_head=True, max_distance=2, num_buckets=8),
}

every_scheme = pytest.mark.parametrize("scheme", ENTRIES, ids=lambda scheme: scheme.name)
every_size = pytest.mark.parametrize("sizes", SIZES.values(), ids=SIZES)


def modules(scheme: SchemeEntry, sizes: SchemeSizes) -> list[nn.Module]:
    """What the scheme learns: the layer at the input, the module inside attention."""
    made = [scheme.make(sizes), scheme.make_input and scheme.make_input(sizes.num_tokens, sizes.num_hiddens)]
    return [module for module in made if isinstance(module, nn.Module)]


class Layer(nn.Module):
    """Causal self-attention under a scheme, whole or step by step."""

    def __init__(self, scheme: SchemeEntry, sizes: SchemeSizes = SIZES["shared"]) -> None:
        super().__init__()
        self.input = scheme.make_input(sizes.num_tokens, sizes.num_hiddens) if scheme.make_input else None
        self.attention = MultiHeadAttention(sizes.num_hiddens, sizes.num_heads, positions=scheme.make(sizes))

    def embed(self, X: Tensor, offset: int = 0) -> Tensor:
        return X if self.input is None else self.input(X, offset)

    def forward(self, X: Tensor, valid_lens: Tensor | None = None, causal: bool = False) -> Tensor:
        X = self.embed(X)
        return self.attention(X, X, X, valid_lens, causal=causal)


@every_size
@every_scheme
def test_the_cost_counts_its_parameters(scheme: SchemeEntry, sizes: SchemeSizes) -> None:
    parameters = chain.from_iterable(module.parameters() for module in modules(scheme, sizes))
    assert scheme.cost(sizes).parameters == sum(parameter.numel() for parameter in parameters)
    assert scheme.cost(sizes).stored >= scheme.cost(sizes).parameters


@every_size
@every_scheme
def test_a_batch_of_padded_rows_is_each_row_by_itself(scheme: SchemeEntry, sizes: SchemeSizes) -> None:
    layer, X = Layer(scheme, sizes), torch.randn(3, NUM_TOKENS, NUM_HIDDENS)
    lengths = torch.tensor([NUM_TOKENS, 4, 1])
    out = layer(X, lengths)
    assert out.shape == X.shape
    assert out.isfinite().all()
    if scheme.depends_on == "grid-offset":  # a grid has no shorter row
        return
    for row, length in enumerate(lengths.tolist()):
        alone = layer(X[row : row + 1, :length])
        torch.testing.assert_close(out[row, :length], alone[0], atol=1e-5, rtol=0)


@every_scheme
def test_decoding_step_by_step_equals_the_whole_pass(scheme: SchemeEntry) -> None:
    if scheme.depends_on == "grid-offset":
        pytest.skip("a grid is read at once")
    layer, X = Layer(scheme), torch.randn(2, NUM_TOKENS, NUM_HIDDENS)
    whole = layer(X, causal=True)
    keys: list[Tensor] = []
    values: list[Tensor] = []
    for step in range(NUM_TOKENS):
        x = layer.embed(X[:, step : step + 1], step)
        projected = layer.attention.project(x, x, step)
        keys.append(projected.keys)
        values.append(projected.values)
        cache = type(projected)(torch.cat(keys, dim=2), torch.cat(values, dim=2))
        torch.testing.assert_close(layer.attention.attend_to(x, cache), whole[:, step : step + 1], atol=1e-5, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=["float16", "bfloat16"])
@every_scheme
def test_half_precision_is_the_same_rounded(scheme: SchemeEntry, dtype: torch.dtype) -> None:
    layer, X = Layer(scheme), torch.randn(1, NUM_TOKENS, NUM_HIDDENS)
    expected = layer(X)
    half = layer.to(dtype)(X.to(dtype))
    assert half.dtype == dtype
    torch.testing.assert_close(half.float(), expected, atol=0.05, rtol=0)


@every_size
@every_scheme
def test_every_parameter_and_the_tokens_have_a_gradient(scheme: SchemeEntry, sizes: SchemeSizes) -> None:
    layer, X = Layer(scheme, sizes), torch.randn(2, NUM_TOKENS, NUM_HIDDENS, requires_grad=True)
    layer(X).square().sum().backward()
    for name, tensor in (("X", X), *layer.named_parameters()):
        assert tensor.grad is not None, name
        assert tensor.grad.isfinite().all(), name
        assert tensor.grad.abs().max() > 0, name


@every_scheme
@pytest.mark.usefixtures("shapes_unchecked")
def test_it_takes_longer_sequences_if_it_says_so(scheme: SchemeEntry) -> None:
    X = torch.randn(1, NUM_TOKENS + 1, NUM_HIDDENS)
    if not scheme.extrapolates:
        with pytest.raises(ValueError, match="expected"):
            Layer(scheme)(X)
    elif scheme.make_input is None:
        assert Layer(scheme)(X).shape == X.shape
    else:  # a formula, whose table can be as long as wanted
        short, long = (scheme.make_input(n, NUM_HIDDENS) for n in (NUM_TOKENS, NUM_TOKENS + 1))
        assert not list(long.parameters())
        assert torch.equal(short(X[:, :NUM_TOKENS]), long(X)[:, :NUM_TOKENS])
