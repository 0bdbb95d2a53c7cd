"""Edits while a model runs: each against its definition, patches, gates, caches, learned sinks, and edits of states."""

import pickle
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from tests.viz_core.hub.families import in_memory, inputs_of
from tests.viz_core.trace.attention_cases import CASES, B, H, K, V, brute_force, tensors
from viz_core.attention import MultiHeadAttention
from viz_core.hub import instrument
from viz_core.pretrained import Translator
from viz_core.trace import (
    Edit,
    Trace,
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
    zero,
)

HEAD = 1


def normalised(weights: Tensor) -> Tensor:
    total = weights.sum(dim=-1, keepdim=True)
    return torch.where(total > 0, weights / total.where(total > 0, 1.0), 0.0)


def one_key(weights: Tensor, key_of: Callable[[int], int], seen: Tensor) -> Tensor:
    found = torch.zeros_like(weights)
    for i in range(weights.shape[-2]):
        if key_of(i) < weights.shape[-1]:
            found[..., i, key_of(i)] = 1.0
    return found * seen


def matrix() -> Tensor:
    drawn = torch.rand(K, K, generator=torch.Generator().manual_seed(6)) + 0.01
    return drawn / drawn.sum(dim=-1, keepdim=True)


def expected_weights(name: str, weights: Tensor, start: int) -> Tensor:
    seen = (weights > 0).to(weights)
    rows, keys = weights.shape[-2:]
    if name == "uniform":
        return normalised(seen)
    if name == "sharpen":
        return normalised(weights**2)
    if name in KEY_OF:
        return one_key(weights, lambda i: KEY_OF[name](i + start), seen)
    if name == "matrix":
        return normalised(matrix()[start : start + rows, :keys].to(weights) * seen)
    if name == "window":  # two keys on either side, and the first of all
        steps = torch.arange(keys)[None] - torch.arange(rows)[:, None] - start
        return normalised(weights * ((steps.abs() <= 2) | (torch.arange(keys) == 0)))
    cut = weights.clone()  # query 5 from keys 0 and 3
    if 0 <= 5 - start < rows:
        cut[..., 5 - start, [0, 3]] = 0
    return normalised(cut)


KEY_OF: dict[str, Callable[[int], int]] = {
    "previous": lambda i: max(0, i - 1),
    "diagonal": lambda i: i,
    "first": lambda _: 0,
}


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
    parts = plain[:, 0] * 0, plain[:, 1], means[2].expand_as(plain[:, 2]), plain[:, 3] * 0.25
    assert torch.equal(output, torch.stack(parts, dim=1))
    weights = trace["attention.0"].weights()
    assert not weights[:, [0, 2]].any(), "they attend to nothing"
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


def test_a_patched_head_does_what_it_did_in_the_other_run() -> None:
    layer = MultiHeadAttention(12, 4, num_key_heads=2)
    X, Y = torch.randn(2, 1, 5, 12)
    with record(values=True) as trace:
        layer(X, X, X)
    other = trace["attention.0"]
    with intervene({"attention.0": patch(1, other)}), record() as trace:
        layer(Y, Y, Y)
    torch.testing.assert_close(trace[0].weights(head=1), other.weights(head=1), atol=1e-6, rtol=0)
    seen: list[Tensor] = []
    layer.W_o.register_forward_pre_hook(lambda _layer, inputs: seen.append(inputs[0]))
    longer = torch.randn(1, 7, 12)
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


@pytest.mark.parametrize("family", ["llama", "marian", "t5"])
def test_places_are_counted_through_generation_with_a_cache(family: str) -> None:
    model = in_memory(family)
    sites = instrument(model)
    last = sites[-1].rsplit(".", 1)[0]
    edits = {f"{last}.self": knock_out(None, query=(4, 7), key=(1, 2))}
    if f"{last}.cross" in sites:
        edits[f"{last}.cross"] = [pattern(1, "diagonal"), knock_out(None, query=3, key=0)]
    ids = torch.tensor([[7, 8, 9, 10, 11, 12]])
    options = {"do_sample": False, "max_new_tokens": 6, "min_new_tokens": 6}

    @torch.no_grad()
    def logits(use_cache: bool) -> Tensor:
        found = model.generate(ids, **options, use_cache=use_cache, output_logits=True, return_dict_in_generate=True)
        return torch.stack(found.logits, dim=1)

    plain = logits(use_cache=True)
    with intervene(edits):
        cached, whole = logits(use_cache=True), logits(use_cache=False)
    torch.testing.assert_close(cached, whole, atol=1e-4, rtol=0)
    assert float((cached - plain).abs().max()) > 1e-3, "an edit that changes nothing would prove nothing"


IDS = torch.tensor([[5, 6, 7, 8, 9, 10]])


@pytest.fixture(params=[0, 2], ids=["whole", "padded before"])
def model_and_inputs(request: pytest.FixtureRequest) -> tuple[torch.nn.Module, dict[str, torch.Tensor], int]:
    model = in_memory("gpt-oss")
    instrument(model)
    mask = torch.ones_like(IDS)
    mask[:, : request.param] = 0
    return model, {"input_ids": IDS, "attention_mask": mask}, request.param


@torch.no_grad()
def maps(model: torch.nn.Module, inputs: dict[str, torch.Tensor]) -> Trace:
    with record() as trace:
        model(**inputs)
    return trace


def test_a_pair_is_cut_by_the_positions_of_its_tokens(model_and_inputs) -> None:  # type: ignore[no-untyped-def]
    model, inputs, padding = model_and_inputs
    before = maps(model, inputs)["decoder.0.self"].weights()
    with intervene({"decoder.0.self": knock_out(None, query=3, key=0)}):
        after = maps(model, inputs)["decoder.0.self"].weights()
    expected = before.clone()
    expected[:, :, 3 + padding, 1 + padding] = 0
    expected /= expected.sum(dim=-1, keepdim=True)
    assert float(before[:, :, 3 + padding, 1 + padding].max()) > 0.1
    torch.testing.assert_close(after[:, :, padding:], expected[:, :, padding:])


def test_a_window_and_a_pattern_are_those_of_the_tokens(model_and_inputs) -> None:  # type: ignore[no-untyped-def]
    model, inputs, padding = model_and_inputs
    with intervene({"decoder.0.self": window(None, 2), "decoder.1.self": pattern(None, "first")}):
        trace = maps(model, inputs)
    weights = trace["decoder.0.self"].weights()[0, :, -1]
    assert (weights[:, [0, 5, 6]] > 0).all()  # the sink stays in sight
    assert not weights[:, 1:5].any()
    assert (trace["decoder.1.self"].weights()[0, :, padding:, 1 + padding] == 1).all()


@torch.no_grad()
@pytest.mark.parametrize(
    ("family", "attention", "mlp", "neurons"),
    [
        ("gpt2", "transformer.h.1.attn", "transformer.h.1.mlp", "transformer.h.1.mlp.c_proj"),
        ("llama", "model.layers.1.self_attn", "model.layers.1.mlp", "model.layers.1.mlp.down_proj"),
        ("opt", "model.decoder.layers.1.self_attn", "model.decoder.layers.1.fc2", "model.decoder.layers.1.fc2"),
        ("gpt_neox", "gpt_neox.layers.1.attention", "gpt_neox.layers.1.mlp", "gpt_neox.layers.1.mlp.dense_4h_to_h"),
    ],
)
def test_parts_are_those_of_plain_hooks(family: str, attention: str, mlp: str, neurons: str) -> None:
    model = in_memory(family).to(torch.bfloat16)
    inputs, seen = inputs_of(model), dict[str, Tensor]()
    instrument(model)
    for name, path in (("attention", attention), ("mlp", mlp)):
        model.get_submodule(path).register_forward_hook(
            lambda _m, _i, out, name=name: seen.update({name: out[0] if isinstance(out, tuple) else out})
        )
    model.get_submodule(neurons).register_forward_pre_hook(lambda _m, given: seen.update(neurons=given[0]))
    with record(states=True) as trace:
        model(**inputs)
    for name, expected in seen.items():
        state = trace.states[f"decoder.1.{name}"]
        assert torch.equal(state, expected.reshape(state.shape)), name


def test_weights_that_are_given_do_not_name_the_sink(model_and_inputs) -> None:  # type: ignore[no-untyped-def]
    model, inputs, _ = model_and_inputs
    edit = patch(0, maps(model, inputs)["decoder.0.self"])
    with pytest.raises(ValueError, match="without a learned sink"), intervene({"decoder.0.self": edit}):
        model(**inputs)


@torch.no_grad()
def test_steps_of_a_cache_are_refused_where_positions_are_named() -> None:
    model = in_memory("llama")
    instrument(model)
    past = model(IDS, use_cache=True).past_key_values
    with pytest.raises(ValueError, match="expected a whole text"), intervene({"decoder.1.mlp": zero(queries=0)}):
        model(torch.tensor([[6]]), past_key_values=past)


@torch.no_grad()
def test_positions_count_from_the_first_token_of_each_text() -> None:
    model = in_memory("llama")
    instrument(model)
    inputs = inputs_of(model)
    inputs = {name: each.flip(1) for name, each in inputs.items()}  # padding comes first
    with intervene({"decoder.0.residual": zero(queries=1)}), record(states=True) as trace:
        model(**inputs)
    zeros = (trace.states["decoder.0.residual"] == 0).all(dim=-1)
    assert zeros.nonzero().tolist() == [[0, 1], [1, 5]]
