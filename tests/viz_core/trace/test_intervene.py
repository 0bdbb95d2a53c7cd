"""Heads edited while a model runs: each edit against its definition, what is not named, patches, gates, caches."""

import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.viz_core.trace.attention_cases import CASES, B, H, K, V, brute_force, tensors
from viz_core.attention import MultiHeadAttention
from viz_core.models import BlockOptions, TransformerEncoder
from viz_core.pretrained import Translator
from viz_core.trace import (
    Edit,
    attend,
    gate,
    head_outputs,
    intervene,
    knock_out,
    mean,
    off,
    patch,
    pattern,
    record,
    sharpen,
    uniform,
    window,
)

HEAD = 1


def normalised(weights: Tensor) -> Tensor:
    total = weights.sum(dim=-1, keepdim=True)
    return torch.where(total > 0, weights / total.where(total > 0, 1.0), 0.0)


def one_key(weights: Tensor, key_of: Callable[[int], int], seen: Tensor) -> Tensor:
    """All weight on one key of each query, as far as it may be seen."""
    found = torch.zeros_like(weights)
    for i in range(weights.shape[-2]):
        if key_of(i) < weights.shape[-1]:
            found[..., i, key_of(i)] = 1.0
    return found * seen


def matrix() -> Tensor:
    drawn = torch.rand(K, K, generator=torch.Generator().manual_seed(6)) + 0.01
    return drawn / drawn.sum(dim=-1, keepdim=True)


def expected_weights(name: str, weights: Tensor, start: int) -> Tensor:
    """What an edit makes of one head's weights, by its definition."""
    seen = (weights > 0).to(weights)
    last = weights.shape[-1] - 1
    if name == "uniform":
        return normalised(seen)
    if name == "sharpen":
        return normalised(weights**2)
    if name == "previous":
        return one_key(weights, lambda i: max(0, i + start - 1), seen)
    if name == "diagonal":
        return one_key(weights, lambda i: i + start, seen)
    if name == "first":
        return one_key(weights, lambda _: 0, seen)
    if name == "matrix":
        rows = weights.shape[-2]
        return normalised(matrix()[start : start + rows, : last + 1].to(weights) * seen)
    if name == "window":  # two keys on either side, and the first of all
        steps = torch.arange(last + 1)[None] - torch.arange(weights.shape[-2])[:, None] - start
        return normalised(weights * ((steps.abs() <= 2) | (torch.arange(last + 1) == 0)))
    cut = weights.clone()  # query 5 from keys 0 and 3
    if 0 <= 5 - start < weights.shape[-2]:
        cut[..., 5 - start, [0, 3]] = 0
    return normalised(cut)


EDITS: dict[str, Edit] = {
    "uniform": uniform(HEAD),
    "sharpen": sharpen(HEAD, 0.5),
    "previous": pattern(HEAD, "previous"),
    "diagonal": pattern(HEAD, "diagonal"),
    "first": pattern(HEAD, "first"),
    "matrix": pattern(HEAD, matrix()),
    "window": window(HEAD, 3, first=1),
    "knock out": knock_out(HEAD, query=5, key=(0, 3)),
}


@pytest.mark.parametrize("edit", EDITS)
@pytest.mark.parametrize("case", CASES)
def test_an_edit_is_what_it_says_and_touches_nothing_else(case: str, edit: str) -> None:
    (queries, keys, values), options = CASES[case]
    plain = attend(queries, keys, values, **options)
    with intervene({"attention.0": EDITS[edit]}), record(values=True) as trace:
        output = attend(queries, keys, values, **options)
    others = [head for head in range(H) if head != HEAD]
    assert torch.equal(output[:, others], plain[:, others])
    weights = brute_force(queries, keys, **options)
    start = max(0, keys.shape[2] - queries.shape[2]) if options.get("causal") else 0
    weights[:, HEAD] = expected_weights(edit, weights[:, HEAD], start)
    torch.testing.assert_close(trace["attention.0"].weights().double(), weights, atol=1e-6, rtol=0)
    group = HEAD // (H // values.shape[1])
    torch.testing.assert_close(
        output[:, HEAD].double(), weights[:, HEAD] @ values[:, group].double(), atol=1e-5, rtol=0
    )
    for each in (trace, pickle.loads(pickle.dumps(trace))):
        torch.testing.assert_close(head_outputs(each["attention.0"]), output, atol=1e-5, rtol=0)


@pytest.mark.parametrize("case", ["everything", "soft cap", "causal square"])
def test_edits_that_replace_what_a_head_writes(case: str) -> None:
    (queries, keys, values), options = CASES[case]
    means = torch.randn(H, V)
    plain = attend(queries, keys, values, **options)
    with intervene({"attention.0": [off(0), mean(2, means), gate(3, 0.25)]}), record() as trace:
        output = attend(queries, keys, values, **options)
    assert torch.equal(output[:, 0], torch.zeros_like(plain[:, 0]))
    assert torch.equal(output[:, 1], plain[:, 1])
    assert torch.equal(output[:, 2], means[2].expand_as(plain[:, 2]))
    assert torch.equal(output[:, 3], plain[:, 3] * 0.25)
    weights = trace["attention.0"].weights()
    assert not weights[:, [0, 2]].any(), "they look at nothing"
    expected = brute_force(queries, keys, **options)
    torch.testing.assert_close(weights[:, [1, 3]].double(), expected[:, [1, 3]], atol=1e-6, rtol=0)


def test_edits_are_applied_from_the_outermost_in_order() -> None:
    """In the other order the pattern would take the place of the sharpened rows."""
    queries, keys, values = tensors()
    given = torch.zeros(queries.shape[2], keys.shape[2])
    given[:, :3] = torch.tensor([0.5, 0.3, 0.2])
    outer = intervene({"attention.0": pattern(0, given)})
    inner = intervene({"attention.0": [knock_out(None, key=0), sharpen(0, 0.5)]})
    with record() as trace, outer, inner:
        attend(queries, keys, values)
    row = torch.tensor([0.0, 0.3, 0.2]).square()
    torch.testing.assert_close(trace["attention.0"].weights()[0, 0, 0, :3], row / row.sum())


@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("key_heads", [1, 2, 4])
def test_off_is_a_head_s_columns_of_the_output_projection_at_zero(bias: bool, key_heads: int) -> None:
    encoder = TransformerEncoder(20, 16, 24, 4, 2, 0.0, bias, options=BlockOptions(num_key_heads=key_heads)).eval()
    X, lengths = torch.randint(0, 20, (3, 6)), torch.tensor([6, 2, 4])
    with intervene({"encoder.1.self": off(2)}):
        found = encoder(X, lengths)
    W_o = encoder.blocks[1].attention.W_o
    with torch.no_grad():
        W_o.weight[:, 8:12] = 0
    assert torch.equal(found, encoder(X, lengths))


def test_a_patched_head_does_what_it_did_in_the_other_run() -> None:
    layer = MultiHeadAttention(12, 4, num_key_heads=2)
    X, Y = torch.randn(2, 1, 5, 12)
    with record(values=True) as trace:
        layer(X, X, X)
    other = trace["attention.0"]
    with intervene({"attention.0": [patch(1, other), patch(2, other, "output")]}), record(values=True) as trace:
        layer(Y, Y, Y)
    patched = trace["attention.0"]
    torch.testing.assert_close(patched.weights(head=1), other.weights(head=1), atol=1e-6, rtol=0)
    assert not patched.weights(head=2).any()
    seen: list[Tensor] = []
    layer.W_o.register_forward_pre_hook(lambda _layer, inputs: seen.append(inputs[0]))
    longer = torch.randn(1, 7, 12)
    with record(values=True) as trace:
        layer(longer, longer, longer)
    with intervene({"attention.0": patch(2, other, "output")}):
        layer(longer, longer, longer)
    plain, found = (each.unflatten(-1, (4, 3))[:, :, 2] for each in seen)
    torch.testing.assert_close(found[:, :5], head_outputs(other)[:, 2], atol=1e-5, rtol=0)
    torch.testing.assert_close(found[:, 5:], plain[:, 5:], atol=1e-6, rtol=0)


def test_the_gradient_of_a_gate_is_michel_s_estimate() -> None:
    """d L / d xi_h at 1 is Att_h . d L / d Att_h (Michel 2019, equation 2), for each example by itself."""
    queries, keys, values = tensors()
    gates = torch.ones(B, H, requires_grad=True)
    with intervene({"attention.0": gate(range(H), gates)}):
        output = attend(queries, keys, values)
    output.square().sum().backward()
    plain = attend(queries, keys, values)
    torch.testing.assert_close(gates.grad, (plain * 2 * plain).sum(dim=(2, 3)), atol=1e-4, rtol=1e-5)


STEP_BY_STEP: list[dict[str, Any]] = [
    {"decoder.1.self": knock_out(None, query=2, key=(0, 1))},
    {"decoder.0.cross": knock_out(None, query=slice(1, 4), key=0), "decoder.1.cross": pattern(2, "diagonal")},
    {"decoder.0.self": [pattern(0, "previous"), sharpen(1, 3.0), off(2, 3)], "encoder.0.self": uniform()},
    {"decoder.1.self": window(None, 2), "decoder.0.self": window((0, 3), 1, first=1)},
]


@pytest.mark.parametrize("edits", STEP_BY_STEP)
@pytest.mark.parametrize("beam", [1, 3])
def test_steps_with_a_cache_agree_with_the_recorded_pass(translator: Translator, edits: Any, beam: int) -> None:
    texts = ["He's calm.", "The cat is on the bed."]  # of two lengths: one is padded
    plain = translator.translate_all(texts, max_new_tokens=9, beam=beam)
    with intervene(edits):
        found = translator.translate_all(texts, max_new_tokens=9, beam=beam)
    assert max(one.cache_error for one in found) < 1e-4
    assert any(one.log_probability != other.log_probability for one, other in zip(found, plain, strict=True))
