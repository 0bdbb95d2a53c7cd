"""States of instrumented models, against their own hidden states and plain hooks."""

import pytest
import torch
import transformers
from torch import Tensor

from tests.viz_core.hub.in_memory import in_memory, inputs_of, output_of
from tests.viz_core.hub.tiny_hybrids import hybrid
from tests.viz_core.maps.test_adapted_projections import Lora
from viz_core.hub import instrument, restore
from viz_core.trace import intervene, patch_state, record, zero

_SMALL = {
    "vocab_size": 97, "hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "num_attention_heads": 4,
    "max_position_embeddings": 32, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}  # fmt: skip
_OTHERS = {
    "mistral": {"num_key_value_heads": 2},
    "qwen2": {"num_key_value_heads": 2},
    "qwen3": {"num_key_value_heads": 2, "head_dim": 4},
    "phi": {"num_key_value_heads": 2},
    "opt": {"ffn_dim": 24, "word_embed_proj_dim": 16},
    "gpt_neox": {},
    "falcon": {"ffn_hidden_size": 24},
    "bloom": {},
    "cohere": {"num_key_value_heads": 2},
    "olmo2": {"num_key_value_heads": 2},
    "granite": {"num_key_value_heads": 2, "residual_multiplier": 0.5},
    "mixtral": {"num_key_value_heads": 2, "num_local_experts": 4},
    "gpt_oss": {"num_key_value_heads": 2, "head_dim": 4, "num_local_experts": 4},
}
_NORM_FIRST = ["gpt2", "llama", "gemma2", "t5", "vit", "dinov2", *_OTHERS]
_NORM_LAST = ["bert", "marian", "bart"]
_BLOOM = "transformer.h.1.mlp"
_ADDED = ("attention", "cross", "mlp")


def _model(family: str) -> transformers.PreTrainedModel:
    if family not in _OTHERS:
        return in_memory(family)
    config = transformers.AutoConfig.for_model(family, **_SMALL, **_OTHERS[family])
    torch.manual_seed(5)
    model = transformers.AutoModelForCausalLM.from_config(config).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return model


def _inputs(model: transformers.PreTrainedModel) -> dict[str, Tensor]:
    inputs = inputs_of(model)
    return {name: each % 97 if each.dtype == torch.long else each for name, each in inputs.items()}


@torch.no_grad()
@pytest.mark.parametrize("family", [*_NORM_FIRST, *_NORM_LAST])
def test_the_stream_is_the_models_own_and_what_is_added_adds_up(family: str) -> None:
    model = _model(family)
    inputs = _inputs(model)
    plain = model(**inputs, output_hidden_states=True)
    instrument(model)
    with record(states=True) as trace:
        seen = model(**inputs, output_hidden_states=True)
    states = trace.states
    for stack in {name.partition(".")[0] for name in states}:
        key = f"{stack}_hidden_states" if f"{stack}_hidden_states" in plain else "hidden_states"
        residuals = [name for name in states if name.startswith(f"{stack}.") and name.endswith(".residual")]
        names = [f"{stack}.embedding", *residuals][: len(plain[key]) - 1]  # the last one may be normalised
        assert len(residuals) == 2 or family in (
            "marian",
            "t5",
            "bart",
            "bert",
            "dinov2",
            "gemma2",
            "gpt2",
            "llama",
            "vit",
        )
        for name, own in zip(names, seen[key], strict=False):
            assert torch.equal(states[name], own), name
        for name, before in zip(residuals, [f"{stack}.embedding", *residuals], strict=False):
            layer = name.removesuffix(".residual")
            added = [states[f"{layer}.{part}"] for part in _ADDED if f"{layer}.{part}" in states]
            assert len(added) >= 2
            if family in _NORM_FIRST:
                torch.testing.assert_close(states[before] + sum(added), states[name], atol=1e-5, rtol=1e-5)
    logits = output_of(model(**inputs))
    with intervene({residuals[0]: patch_state(states[residuals[0]])}):
        assert torch.equal(output_of(model(**inputs)), logits)
    with intervene({f"{residuals[0].removesuffix('.residual')}.mlp": zero()}), record(states=True) as edited:
        assert not torch.equal(output_of(model(**inputs)), logits)
    assert not edited.states[f"{residuals[0].removesuffix('.residual')}.mlp"].any()


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
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_parts_are_those_of_plain_hooks(
    family: str, attention: str, mlp: str, neurons: str, dtype: torch.dtype
) -> None:
    model = _model(family).to(dtype)
    inputs, seen = _inputs(model), dict[str, Tensor]()
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
    model = _model("llama")
    instrument(model)
    inputs = _inputs(model)
    inputs = {name: each.flip(1) for name, each in inputs.items()}  # padding comes first
    with intervene({"decoder.0.residual": zero(queries=1)}), record(states=True) as trace:
        model(**inputs)
    zeros = (trace.states["decoder.0.residual"] == 0).all(dim=-1)
    assert zeros.nonzero().tolist() == [[0, 1], [1, 5]]


@torch.no_grad()
def test_steps_of_a_cache_are_refused_where_positions_are_named() -> None:
    model = _model("llama")
    instrument(model)
    ids = torch.tensor([[3, 4, 5]])
    past = model(ids, use_cache=True).past_key_values
    with pytest.raises(ValueError, match="expected a whole text"), intervene({"decoder.1.mlp": zero(queries=0)}):
        model(torch.tensor([[6]]), past_key_values=past)


@torch.no_grad()
def test_a_restored_model_is_not_followed() -> None:
    model = _model("gpt2")
    before = [(len(part._forward_hooks), len(part._forward_pre_hooks)) for part in model.modules()]
    instrument(model)
    instrument(model)
    restore(model)
    assert [(len(part._forward_hooks), len(part._forward_pre_hooks)) for part in model.modules()] == before
    with record(states=True) as trace:
        model(**_inputs(model))
    assert not trace.states


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
