"""What plain PyTorch attends by, worked out from its arguments: always the weights of torch's own kernels."""

from typing import Any

import hypothesis.strategies as st
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from torch import Tensor, nn
from torch.nn.attention.bias import causal_lower_right, causal_upper_left

from viz_core.trace import record


def by_the_kernel(query: Tensor, key: Tensor, **options: Any) -> Tensor:
    """torch's own weights: what it answers where the value of key j is the j-th unit vector."""
    shape = key.shape[:-1]
    return F.scaled_dot_product_attention(query, key, torch.eye(shape[-1]).expand(*shape, -1), **options)


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def allowed(*shape: int) -> Tensor:
    mask = drawn(*shape, seed=9) > 0
    mask[..., 0] = True
    return mask


KERNEL: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "plain": ((2, 4, 5, 8), (2, 4, 7, 8), {}),
    "scale": ((2, 4, 5, 8), (2, 4, 7, 8), {"scale": 0.7}),
    "boolean mask": ((2, 4, 5, 8), (2, 4, 7, 8), {"attn_mask": allowed(5, 7)}),
    "boolean mask of padding": ((2, 4, 5, 8), (2, 4, 7, 8), {"attn_mask": allowed(2, 1, 1, 7)}),
    "mask of three axes": ((2, 4, 5, 8), (2, 4, 7, 8), {"attn_mask": allowed(4, 5, 7)}),
    "additive mask": ((2, 4, 5, 8), (2, 4, 7, 8), {"attn_mask": drawn(1, 4, 5, 7)}),
    "causal": ((2, 4, 5, 8), (2, 4, 5, 8), {"is_causal": True}),
    "causal, more keys": ((2, 4, 5, 8), (2, 4, 7, 8), {"is_causal": True}),
    "causal, more queries": ((2, 4, 7, 8), (2, 4, 5, 8), {"is_causal": True}),
    "causal, the last query is the newest": ((2, 4, 5, 8), (2, 4, 7, 8), {"attn_mask": causal_lower_right(5, 7)}),
    "causal, the first query is the oldest": ((2, 4, 5, 8), (2, 4, 7, 8), {"attn_mask": causal_upper_left(5, 7)}),
    "grouped": ((2, 4, 5, 8), (2, 2, 7, 8), {"enable_gqa": True}),
    "grouped, causal": ((2, 4, 5, 8), (2, 2, 5, 8), {"enable_gqa": True, "is_causal": True}),
    "no batch": ((4, 5, 8), (4, 7, 8), {"attn_mask": allowed(4, 5, 7)}),
    "no heads": ((5, 8), (7, 8), {"attn_mask": allowed(5, 7)}),
    "windows": ((2, 3, 4, 5, 8), (2, 3, 4, 7, 8), {"attn_mask": allowed(3, 1, 5, 7)}),
    "one batch of keys": ((2, 4, 5, 8), (1, 4, 7, 8), {}),
    "one head of keys": ((2, 4, 5, 8), (2, 1, 7, 8), {}),
}


@pytest.mark.parametrize("case", KERNEL)
def test_the_kernel(case: str) -> None:
    query_shape, key_shape, options = KERNEL[case]
    query, key = drawn(*query_shape), drawn(*key_shape, seed=1)
    expected = by_the_kernel(query, key, **options)
    with record(torch_calls=True) as trace:
        output = by_the_kernel(query, key, **options)
    assert torch.equal(output, expected)
    got = trace["attention.0"].weights()
    assert len(trace) == 1
    assert got.numel() == expected.numel()
    assert float((got.reshape(expected.shape) - expected).abs().max()) < 1e-6


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_nested_batches(layout: torch.layout) -> None:
    lengths = (3, 5, 1)
    parts = [drawn(n, 2, 8, seed=n) for n in lengths]
    heads_first = [part.transpose(0, 1).contiguous() for part in parts]
    jagged = layout == torch.jagged
    nested = torch.nested.nested_tensor(parts if jagged else heads_first, layout=layout)
    nested = nested.transpose(1, 2) if jagged else nested
    with torch.no_grad(), record(torch_calls=True) as trace:
        F.scaled_dot_product_attention(nested, nested, nested)
    weights = trace["attention.0"].weights()
    assert weights.shape == (3, 2, 5, 5)
    for i, (n, part) in enumerate(zip(lengths, heads_first, strict=True)):
        alone = by_the_kernel(part, part)
        torch.testing.assert_close(weights[i, :, :n, :n], alone, atol=1e-6, rtol=0)
        assert not weights[i, :, n:].any()
        assert not weights[i, :, :, n:].any()


# nn.MultiheadAttention


def own_weights(layer: nn.MultiheadAttention, *inputs: Tensor, **options: Any) -> Tensor:
    weights = layer(*inputs, **{**options, "need_weights": True, "average_attn_weights": False})[1]
    return weights if weights.dim() == 4 else weights[None]


def assert_seen(layer: nn.MultiheadAttention, *inputs: Tensor, **options: Any) -> None:
    """The same output as no_recording, to the last bit, and torch's own weights."""
    torch.manual_seed(1)
    plain = layer(*inputs, **options)
    with record(torch_calls=True) as trace:
        torch.manual_seed(1)
        output = layer(*inputs, **options)
    for before, after in zip(plain, output, strict=True):
        assert before is after is None or torch.equal(before, after)
    assert trace.sites == ("attention.0",)
    dropout, layer.dropout = layer.dropout, 0.0
    expected = own_weights(layer, *inputs, **options)
    layer.dropout = dropout
    got = trace["attention.0"].weights()
    assert got.shape == expected.shape
    assert float((got - expected.detach()).abs().max()) < 1e-6


def padding(kind: type, *shape: int) -> Tensor:
    """True where a key may not be looked at, or the same as numbers; the first key always may."""
    hidden = ~allowed(*shape)
    return hidden if kind is bool else drawn(*shape, seed=5).masked_fill(hidden, -torch.inf)


@given(st.data())
def test_every_option_of_multihead_attention(data: st.DataObject) -> None:
    def flag(name: str) -> bool:
        return data.draw(st.booleans(), label=name)

    num_heads, batch = data.draw(st.sampled_from([1, 2, 3])), data.draw(st.sampled_from([1, 2]))
    num_queries, num_keys = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    itself = flag("self-attention")
    num_keys = num_queries if itself else num_keys
    d = 4 * num_heads
    wide = not itself and flag("other widths")
    layer = nn.MultiheadAttention(
        d,
        num_heads,
        dropout=data.draw(st.sampled_from([0.0, 0.4]), label="dropout"),
        bias=flag("bias"),
        add_bias_kv=flag("add_bias_kv"),
        add_zero_attn=flag("add_zero_attn"),
        kdim=6 if wide else None,
        vdim=5 if wide else None,
        batch_first=flag("batch_first"),
    ).train(flag("training"))
    batched = flag("batched")

    def tokens(count: int, width: int, seed: int) -> Tensor:
        X = drawn(batch, count, width, seed=seed) if batched else drawn(count, width, seed=seed)
        return X.transpose(0, 1) if batched and not layer.batch_first else X

    X = tokens(num_queries, d, 1)
    inputs = (X, X, X) if itself else (X, tokens(num_keys, 6 if wide else d, 2), tokens(num_keys, 5 if wide else d, 3))
    options: dict[str, Any] = {name: flag(name) for name in ("need_weights", "average_attn_weights")}
    kind = data.draw(st.sampled_from([bool, float]))
    if flag("attn_mask"):
        heads = (batch if batched else 1) * num_heads
        shape = (heads, num_queries, num_keys) if flag("a mask for each head") else (num_queries, num_keys)
        options["attn_mask"] = padding(kind, *shape)
    if flag("key_padding_mask"):
        options["key_padding_mask"] = padding(kind, *((batch, num_keys) if batched else (num_keys,)))
    with torch.set_grad_enabled(flag("gradients")):
        assert_seen(layer, *inputs, **options)


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize("need_weights", [False, True])
def test_a_mask_marked_as_causal(need_weights: bool, padded: bool) -> None:
    layer, X = nn.MultiheadAttention(8, 2, batch_first=True), drawn(2, 5, 8)
    options = {"key_padding_mask": padding(float, 2, 5)} if padded else {}
    mask = nn.Transformer.generate_square_subsequent_mask(5)
    assert_seen(layer, X, X, X, **options, attn_mask=mask, is_causal=True, need_weights=need_weights)


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("kind", ["padding", "boolean", "additive"])
@pytest.mark.parametrize("with_gradients", [False, True])
def test_a_query_without_keys_has_the_weights_that_torch_used(
    kind: str, need_weights: bool, with_gradients: bool
) -> None:
    """They are NaN where torch's softmax is, and 0 where its kernel skips the row."""
    layer, X = nn.MultiheadAttention(8, 2, batch_first=True).eval(), drawn(2, 4, 8)
    hidden = torch.arange(4)[:, None].expand(4, 4) == 2
    padding = torch.tensor([[False, False, False, True], [True, True, True, True]])
    options: dict[str, Any] = {
        "padding": {"key_padding_mask": padding},
        "boolean": {"attn_mask": hidden},
        "additive": {"attn_mask": torch.zeros(4, 4).masked_fill(hidden, -torch.inf)},
    }[kind]
    with torch.set_grad_enabled(with_gradients), record(torch_calls=True) as trace:
        output, weights = layer(X, X, X, need_weights=need_weights, average_attn_weights=False, **options)
    place = (1, slice(None)) if kind == "padding" else (slice(None), 2)
    found = trace["attention.0"].weights()
    row = found[place[0], :, place[1]]
    assert row.isnan().all() if output[place].isnan().all() else not row.any()
    others = torch.ones(2, 4, dtype=torch.bool)
    others[place] = False
    seen = found.transpose(1, 2)[others]
    torch.testing.assert_close(seen.sum(dim=-1), torch.ones(len(seen), 2))
    if weights is not None:
        torch.testing.assert_close(found, weights.detach(), equal_nan=True)


def test_two_boolean_masks_of_the_function_hide_what_either_hides() -> None:
    layer, X = nn.MultiheadAttention(8, 2).eval(), drawn(4, 2, 8)
    hidden, padding = torch.zeros(4, 4, dtype=torch.bool), torch.zeros(2, 4, dtype=torch.bool)
    hidden[:, 1], padding[0, 3] = True, True
    parts = layer.in_proj_weight, layer.in_proj_bias, None, None, False, 0.0, *layer.out_proj.parameters(), False
    masks = {"key_padding_mask": padding, "attn_mask": hidden}
    with torch.no_grad(), record(torch_calls=True) as trace:
        _, weights = F.multi_head_attention_forward(X, X, X, 8, 2, *parts, **masks, average_attn_weights=False)
    found = trace["attention.0"].weights()
    torch.testing.assert_close(found, weights)
    assert not found[:, :, :, 1].any()
    assert not found[0, :, :, 3].any()
    assert found[1, :, :, 3].all()
