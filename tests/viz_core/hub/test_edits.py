"""Edits of models that write with a cache, and beside learned sinks; and edits of states."""

import pytest
import torch
from torch import Tensor

from tests.viz_core.hub.families import hybrid, in_memory, inputs_of
from tests.viz_core.maps.test_contribution_shares import Lora
from viz_core.hub import instrument
from viz_core.trace import Trace, intervene, knock_out, patch, pattern, record, uniform, window, zero


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
