"""Models in memory that write with a cache, edits in padded batches and beside learned sinks, and edits of states."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from tests.viz_core.hub.families import (
    hybrid,
    in_memory,
    inputs_of,
    output_of,
)
from tests.viz_core.maps.test_contribution_shares import Lora
from viz_core.hub import instrument
from viz_core.maps.fingerprints import measure_layer
from viz_core.trace import (
    Trace,
    gate,
    intervene,
    knock_out,
    mean,
    mean_outputs,
    off,
    patch,
    pattern,
    record,
    uniform,
    window,
    zero,
)


@pytest.mark.parametrize("uncounted", [False, True])
@pytest.mark.parametrize(("family", "cache"), [("gpt2", None), ("gemma2", "static"), ("t5", None)])
def test_writing_with_a_cache(family: str, cache: str | None, uncounted: bool) -> None:
    """Each step's rows are those of one pass over the whole, also of a cache that is written over at the next step."""
    model = in_memory(family)
    prompt = {name: each for name, each in inputs_of(model).items() if name != "decoder_input_ids"}
    options = {"max_new_tokens": 4, "min_new_tokens": 4, "do_sample": False, "cache_implementation": cache}
    if not model.config.is_encoder_decoder:  # such are padded at the left
        prompt = {name: each.flip(-1) for name, each in prompt.items()}
    expected = model.generate(**prompt, **options)
    instrument(model)
    without_counts = torch.inference_mode(uncounted)  # torch does not count there how often a tensor is written
    with without_counts, record() as trace:
        written = model.generate(**prompt, **options)
    assert torch.equal(written, expected)
    if model.config.is_encoder_decoder:
        inputs, start = {**prompt, "decoder_input_ids": written}, 1
    else:
        mask = F.pad(prompt["attention_mask"], (0, 4), value=1)
        places = (mask.cumsum(dim=1) - 1).clamp(min=0)
        inputs, start = {"input_ids": written, "attention_mask": mask, "position_ids": places}, 9
    with torch.no_grad(), record() as whole:
        model(**inputs, use_cache=False)
    weights = whole["decoder.1.self"].weights()
    steps = [call.weights() for call in trace if call.site.split("@")[0] == "decoder.1.self"]
    assert [step.shape[2] for step in steps] == [start, 1, 1, 1]
    for row, step in enumerate(steps, start - 1):
        width = min(step.shape[3], row + 1)
        torch.testing.assert_close(step[:, :, -1, :width], weights[:, :, row, :width], atol=1e-5, rtol=0)
        assert not step[:, :, -1, width:].any()


@pytest.mark.parametrize("family", ["gpt2", "llama", "marian", "t5"])
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


TEXT, LONG = 5, 9


def batch(side: str) -> dict[str, Tensor]:
    drawn = torch.randint(4, 190, (2, LONG), generator=torch.Generator().manual_seed(1))
    real = torch.ones(2, LONG, dtype=torch.bool)
    real[0] = torch.arange(LONG) >= LONG - TEXT if side == "left" else torch.arange(LONG) < TEXT
    positions = (real.long().cumsum(dim=-1) - 1).clamp_min(0)
    return {"input_ids": drawn.where(real, 0), "attention_mask": real.long(), "position_ids": positions}


def alone(inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    real = inputs["attention_mask"][0].bool()
    return {name: tensor[:1, real] for name, tensor in inputs.items()}


def run(model: Any, inputs: dict[str, Tensor], edits: dict[str, Any]) -> tuple[Tensor, Any]:
    with torch.no_grad(), intervene(edits), record(values=True) as trace:
        return output_of(model(**inputs)), trace


def edits_of(trace: Any, site: str) -> dict[str, Any]:
    call = trace[site]
    return {
        "nothing": None,
        "off": off(0),
        "gate": gate([0, 1], torch.tensor([0.5, 2.0])),
        "mean": mean(1, mean_outputs(call)),
        "uniform": uniform(None),
        "first": pattern(None, "first"),
        "previous": pattern(1, "previous"),
        "knock out": knock_out(None, key=0),
        "window": window(None, 2, first=1),
        "patch": patch(0, call.text(0), queries=slice(1, 3)),
    }


@pytest.mark.parametrize(("family", "side"), [("gpt2", "left"), ("bert", "right"), ("gemma2", "left")])
def test_a_text_in_a_padded_batch_is_edited_and_measured_as_alone(family: str, side: str) -> None:
    model = in_memory(family)
    sites, inputs = instrument(model), batch(side)
    real = inputs["attention_mask"][0].bool()
    _, reference = run(model, inputs, {})
    for name, edit in edits_of(reference, sites[0]).items():
        chosen = {} if edit is None else {sites[0]: edit}
        padded, trace = run(model, inputs, chosen)
        expected, own = run(model, alone(inputs), chosen)
        torch.testing.assert_close(padded[:1, real], expected, atol=1e-5, rtol=0, msg=lambda m, n=name: f"{n}: {m}")
        for site in sites:
            for found, wanted in zip(
                measure_layer(trace[site]).fingerprints, measure_layer(own[site]).fingerprints, strict=True
            ):
                assert found == pytest.approx(wanted, abs=1e-5), (name, site)


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


def test_weights_that_are_given_do_not_name_the_sink(model_and_inputs) -> None:  # type: ignore[no-untyped-def]
    model, inputs, _ = model_and_inputs
    call = maps(model, inputs)["decoder.0.self"]
    for edit in (patch(0, call), pattern(0, torch.eye(6))):
        with pytest.raises(ValueError, match="without a learned sink"), intervene({"decoder.0.self": edit}):
            model(**inputs)
    with intervene({"decoder.0.self": uniform()}):
        assert maps(model, inputs)["decoder.0.self"].weights()[0, 0, -1].unique().numel() <= 2


_BLOOM = "transformer.h.1.mlp"


@torch.no_grad()
@pytest.mark.parametrize(
    ("family", "attention", "mlp", "neurons"),
    [
        ("gpt2", "transformer.h.1.attn", "transformer.h.1.mlp", "transformer.h.1.mlp.c_proj"),
        ("llama", "model.layers.1.self_attn", "model.layers.1.mlp", "model.layers.1.mlp.down_proj"),
        ("opt", "model.decoder.layers.1.self_attn", "model.decoder.layers.1.fc2", "model.decoder.layers.1.fc2"),
        ("bloom", "transformer.h.1.self_attention.dense", f"{_BLOOM}.dense_4h_to_h", f"{_BLOOM}.dense_4h_to_h"),
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


@torch.no_grad()
def test_steps_of_a_cache_are_refused_where_positions_are_named() -> None:
    model = in_memory("llama")
    instrument(model)
    ids = torch.tensor([[3, 4, 5]])
    past = model(ids, use_cache=True).past_key_values
    with pytest.raises(ValueError, match="expected a whole text"), intervene({"decoder.1.mlp": zero(queries=0)}):
        model(torch.tensor([[6]]), past_key_values=past)


@torch.no_grad()
def test_what_adapters_add_is_part_of_what_they_adapt() -> None:
    model, seen = in_memory("llama"), dict[str, Tensor]()
    layer = model.model.layers[1]
    layer.self_attn.o_proj, layer.mlp.down_proj = Lora(layer.self_attn.o_proj), Lora(layer.mlp.down_proj)
    instrument(model)
    layer.self_attn.register_forward_hook(lambda _m, _i, out: seen.update(attention=out[0]))
    layer.mlp.register_forward_hook(lambda _m, _i, out: seen.update(mlp=out))
    with record(states=True) as trace:
        model(**inputs_of(model))
    for name, expected in seen.items():
        assert torch.equal(trace.states[f"decoder.1.{name}"], expected), name


@torch.no_grad()
def test_what_follows_attention_beside_a_mixer_is_not_named_attention() -> None:
    model, seen = hybrid("falcon_h1"), list[Tensor]()
    instrument(model)
    model.model.layers[1].feed_forward.register_forward_hook(lambda _m, _i, out: seen.append(out))
    with record(states=True) as trace:
        model(torch.tensor([[5, 6, 7, 8]]))
    parts = {name.rpartition(".")[2] for name in trace.states if name.startswith("decoder.1.")}
    assert parts >= {"sublayers", "mlp", "residual"}
    assert "attention" not in parts
    assert torch.equal(trace.states["decoder.1.mlp"], seen[0])
