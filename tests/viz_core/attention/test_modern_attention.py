"""Grouped queries, soft caps, windows, positions, masks and biases in one layer: against loops and against published
models' own layers, with their weights."""

import math
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import torch
import transformers
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from tests.viz_core.positional.test_register import HEAD_DIM, HEADS, LENGTH, SCHEMES, bias_by_loops
from viz_core.attention import MultiHeadAttention
from viz_core.models import BlockOptions, GatedFFN, TransformerEncoder
from viz_core.positional import Rotary
from viz_core.trace import record

WIDTH = HEADS * HEAD_DIM


@st.composite
def cases(draw: st.DrawFn) -> SimpleNamespace:
    """A layer's options and its inputs."""
    num_keys = draw(st.integers(1, LENGTH))
    return SimpleNamespace(
        num_keys=num_keys,
        num_queries=draw(st.integers(1, num_keys)),
        lengths=draw(st.none() | st.tuples(*[st.integers(0, num_keys)] * 2)),
        scheme=draw(st.sampled_from(list(SCHEMES))),
        key_heads=draw(st.sampled_from([1, 2, 4])),
        softcap=draw(st.sampled_from([None, 0.5, 20.0])),
        window=draw(st.none() | st.integers(1, LENGTH)),
        **{name: draw(st.booleans()) for name in ("causal", "masked", "biased")},
    )


def weights_by_loops(
    case: SimpleNamespace, layer: MultiHeadAttention, queries: Tensor, keys: Tensor, seen: Tensor
) -> Tensor:
    """(batch, heads, queries, keys); rows of which nothing is seen are zeros."""
    first = case.num_keys - case.num_queries

    def heads(projected: Tensor, start: int) -> Tensor:
        return layer.positions.rotate(projected.unflatten(-1, (-1, HEAD_DIM)).transpose(1, 2), start)

    q, k = heads(layer.W_q(queries), first), heads(layer.W_k(keys), 0)
    added = bias_by_loops(layer.positions, q, case.num_keys)
    out = torch.zeros_like(added)
    for h in range(HEADS):
        for i in range(case.num_queries):
            for b in range(len(queries)):
                scores = k[b, h * case.key_heads // HEADS] @ q[b, h, i] / HEAD_DIM**0.5
                if case.softcap is not None:
                    scores = case.softcap * torch.tanh(scores / case.softcap)
                powers = torch.exp(scores + added[b, h, i]) * seen[b, h, i]
                out[b, h, i] = powers / powers.sum().clamp_min(1e-300)
    return out


@given(case=cases(), seed=st.integers(0, 999))
def test_every_option_with_every_other_by_loops(case: SimpleNamespace, seed: int) -> None:
    torch.manual_seed(seed)
    options: dict[str, Any] = {"softcap": case.softcap, "window": case.window, "num_key_heads": case.key_heads}
    layer = MultiHeadAttention(WIDTH, HEADS, positions=SCHEMES[case.scheme](), **options).double()
    queries, keys = torch.randn(2, case.num_queries, WIDTH).double(), torch.randn(2, case.num_keys, WIDTH).double()
    shape = (2, HEADS, case.num_queries, case.num_keys)
    mask = torch.rand(2, 1, case.num_queries, case.num_keys) < 0.7 if case.masked else None
    bias = torch.randn(1, HEADS, 1, case.num_keys).double() if case.biased else None

    first = case.num_keys - case.num_queries
    seen = torch.ones(shape) if mask is None else mask.expand(shape).double()
    for i in range(case.num_queries):
        for j in range(case.num_keys):
            offset = j - first - i
            late = case.causal and offset > 0
            far = case.window is not None and abs(offset) >= case.window
            seen[:, :, i, j] *= not (late or far)
            for b, length in enumerate(case.lengths or ()):
                seen[b, :, i, j] *= j < length

    weights = weights_by_loops(case, layer, queries, keys, seen)
    if bias is not None:  # exp(s + b) = exp(s) exp(b)
        weights = weights * bias.exp()
        weights = weights / weights.sum(-1, keepdim=True).clamp_min(1e-300)
    values = layer.W_v(keys).unflatten(-1, (-1, HEAD_DIM)).transpose(1, 2)
    values = values.repeat_interleave(HEADS // case.key_heads, dim=1)
    expected = layer.W_o((weights @ values).transpose(1, 2).flatten(2))

    lengths = None if case.lengths is None else torch.tensor(case.lengths)
    with record() as trace:
        output = layer(queries, keys, keys, lengths, causal=case.causal, mask=mask, bias=bias)
    torch.testing.assert_close(output, expected, atol=1e-6, rtol=0)
    torch.testing.assert_close(trace["attention.0"].weights().double(), weights, atol=1e-6, rtol=0)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_gradients_are_finite_where_a_query_sees_nothing(scheme: str) -> None:
    layer = MultiHeadAttention(WIDTH, HEADS, positions=SCHEMES[scheme](), window=2, num_key_heads=2)
    X = torch.randn(2, 5, WIDTH, requires_grad=True)
    mask = torch.tensor([True, False, True, True, False])[:, None].expand(5, 5)
    output = layer(X, X, X, torch.tensor([5, 0]), causal=True, mask=mask[None, None])
    assert torch.equal(output[0, 1], torch.zeros(WIDTH))
    assert torch.equal(output[1], torch.zeros(5, WIDTH))
    output.square().sum().backward()
    for tensor in (X, *layer.parameters()):
        assert tensor.grad is not None
        assert tensor.grad.isfinite().all()
        assert tensor.grad.abs().max() > 0


class Seen(NamedTuple):
    """What a published model's own layer was given, and what it made of it."""

    hidden: Tensor
    output: Tensor
    weights: Tensor


def watch(model: nn.Module, layer: nn.Module, **inputs: Tensor) -> Seen:
    """Run a model, masks and positions made by itself, and see what one of its attention layers does."""
    seen: list[Seen] = []

    def hook(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], result: tuple[Any, ...]) -> None:
        hidden = args[0] if args else kwargs["hidden_states"]
        (weights,) = (part for part in result[1:] if part is not None and len(part) == len(hidden))
        seen.append(Seen(hidden, result[0], weights))

    handle = layer.register_forward_hook(hook, with_kwargs=True)
    with torch.no_grad():
        model.eval()(**inputs)
    handle.remove()
    return seen[0]


def take(ours: MultiHeadAttention, theirs: nn.Module, names: str) -> MultiHeadAttention:
    """Our layer with the weights of theirs."""
    parts = zip(("W_q", "W_k", "W_v", "W_o"), names.split(), strict=True)
    state = {f"{our}.{k}": t for our, name in parts for k, t in theirs.get_submodule(name).state_dict().items()}
    own = {k: t for k, t in ours.state_dict().items() if k.startswith("positions.")}
    ours.load_state_dict({**state, **own}, strict=True)
    return ours.eval()


def same(ours: MultiHeadAttention, seen: Seen, **options: Any) -> None:
    X = seen.hidden
    with torch.no_grad(), record() as trace:
        output = ours(X, X, X, **options)
    torch.testing.assert_close(output, seen.output, atol=1e-5, rtol=0)
    torch.testing.assert_close(trace["attention.0"].weights(), seen.weights, atol=1e-5, rtol=0)


SIZES: dict[str, Any] = {"vocab_size": 30, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
SIZES |= {"num_key_value_heads": 2, "intermediate_size": 16, "head_dim": 8, "attn_implementation": "eager"}
SIZES |= {"rope_parameters": {"rope_type": "default", "rope_theta": 500.0}}
LLAMAS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "Llama": ({"attention_bias": True}, {}),
    "Mistral": ({"sliding_window": 3}, {"window": 3}),
    "Gemma2": (
        {"attn_logit_softcapping": 0.5, "query_pre_attn_scalar": 8, "sliding_window": 4}
        | {"layer_types": ["sliding_attention", "full_attention"]},
        {"window": 4, "softcap": 0.5},
    ),
}


@pytest.mark.parametrize("family", LLAMAS)
def test_equals_the_layers_of_published_models(family: str) -> None:
    """Grouped queries and rotary positions; Mistral's sliding window; Gemma 2's soft cap beside a window."""
    config, options = LLAMAS[family]
    model = getattr(transformers, f"{family}Model")(getattr(transformers, f"{family}Config")(**SIZES, **config))
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.3)
    ids = torch.randint(0, 30, (2, 9))
    for i, block in enumerate(model.layers):
        seen = watch(model, block.self_attn, input_ids=ids)
        if family == "Gemma2" and i == 1:  # its second layer sees everything
            options = {**options, "window": None}
        bias = bool(config.get("attention_bias"))
        ours = MultiHeadAttention(
            32, 4, bias=bias, num_key_heads=2, positions=Rotary(500.0, interleaved=False), **options
        )
        same(take(ours, block.self_attn, "q_proj k_proj v_proj o_proj"), seen, causal=True)


@pytest.mark.parametrize("family", ["Llama", "Mistral"])
def test_a_published_model_is_written_with_options_alone(family: str) -> None:
    """From token ids to the last norm, with the published model's weights."""
    config, options = LLAMAS[family]
    theirs = getattr(transformers, f"{family}Model")(getattr(transformers, f"{family}Config")(**SIZES, **config)).eval()
    for parameter in theirs.parameters():
        nn.init.normal_(parameter, std=0.3)
    ours = TransformerEncoder(
        30, 32, 16, 4, 2, 0.0, bool(config.get("attention_bias")),
        options=BlockOptions(
            norm_first=True, norm=partial(nn.RMSNorm, eps=1e-6), ffn=GatedFFN,
            num_key_heads=2, positions=Rotary(500.0, interleaved=False), **options,
        ),
    ).eval()  # fmt: skip
    names = {
        "embed_tokens": "embedding", "layers.": "blks.block", "self_attn": "attention", "q_proj": "W_q",
        "k_proj": "W_k", "v_proj": "W_v", "o_proj": "W_o", "mlp": "ffn",
        "gate_proj": "gate", "up_proj": "dense1", "down_proj": "dense2",
        "input_layernorm": "addnorm1.ln", "post_attention_layernorm": "addnorm2.ln",
    }  # fmt: skip
    state = {}
    for name, tensor in theirs.state_dict().items():
        for their, our in names.items():
            name = name.replace(their, our)
        state[name] = tensor
    state["embedding.weight"] = state["embedding.weight"] / math.sqrt(32)  # ours multiplies by it
    ours.load_state_dict(state, strict=True)
    ids = torch.randint(0, 30, (2, 9))
    with torch.no_grad():
        torch.testing.assert_close(ours(ids, causal=True), theirs(ids).last_hidden_state, atol=1e-4, rtol=0)
