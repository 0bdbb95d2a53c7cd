"""States of instrumented models against plain hooks, and edits of states."""

import pytest
import torch
from torch import Tensor

from tests.viz_core.hub.families import hybrid, in_memory, inputs_of
from tests.viz_core.maps.test_adapted_projections import Lora
from viz_core.hub import instrument
from viz_core.trace import intervene, record, zero

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
