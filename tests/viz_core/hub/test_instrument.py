"""A model of transformers in memory: seen exactly, in evaluation and in training, and afterwards what it was."""

from __future__ import annotations

import contextlib
import copy
import gc
import sys
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn

from tests.viz_core.hub.test_parity import maps_of
from tests.viz_core.hub.tiny_models import random_model
from viz_core.hub import ATTENTION_IMPLEMENTATION, instrument, restore
from viz_core.trace import Trace, intervene, knock_out, off, pattern, record, site_of

FAMILIES = ["gpt2", "bert", "t5", "llama", "gemma2", "vit", "marian", "dinov2", "bart"]
STACKS = {"gpt2": "decoder", "llama": "decoder", "gemma2": "decoder"}  # the others read, or have both stacks
NO_DROPOUT = dict.fromkeys(
    "resid_pdrop embd_pdrop attn_pdrop hidden_dropout_prob attention_probs_dropout_prob dropout dropout_rate "
    "attention_dropout activation_dropout drop_path_rate".split(),
    0.0,
)


def in_memory(family: str, **options: Any) -> Any:
    return random_model(family, **{**NO_DROPOUT, **options})


def inputs_of(model: Any) -> dict[str, Tensor]:
    """A batch with padding, or a batch of pictures."""
    draw = torch.Generator().manual_seed(8)
    if model.main_input_name == "pixel_values":
        return {"pixel_values": torch.randn(2, 3, 16, 16, generator=draw)}
    real = torch.arange(9) < torch.tensor([9, 5])[:, None]
    inputs = {"input_ids": torch.randint(4, 390, (2, 9), generator=draw).where(real, 0), "attention_mask": real.long()}
    if model.config.model_type == "bert":
        inputs["input_ids"] %= 200
    if model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = torch.randint(4, 390, (2, 7), generator=draw)
    return inputs


def eager_twin(model: Any) -> Any:
    """A copy of a model, weights and all, that gives whole maps."""
    twin = copy.deepcopy(model)
    twin.set_attn_implementation("eager")
    return twin


def output_of(result: Any) -> Tensor:
    return result.logits if "logits" in result else result.last_hidden_state


def assert_seen(model: Any, sites: tuple[str, ...], inputs: dict[str, Tensor]) -> None:
    """Every map is what the same weights give eagerly, and so is the output."""
    with record() as trace:
        result = model(**inputs)
    expected = eager_twin(model)(**inputs, output_attentions=True)
    maps = maps_of(expected, STACKS.get(model.config.model_type, "encoder"))
    assert set(trace.sites) == set(sites) == set(maps)
    real = inputs["attention_mask"].bool() if "attention_mask" in inputs else None
    for site, weights in maps.items():
        assert weights.std() > 0.01, "maps that are all alike would prove nothing"
        difference = (trace[site].weights() - weights.detach()).abs().amax(dim=(1, 3))
        # Queries that are padding see what they like.
        rows = real if real is not None and real.shape == difference.shape else torch.ones_like(difference).bool()
        assert float(difference[rows].max()) < 1e-6, site
    before, after = output_of(expected), output_of(result)
    rows = real if real is not None and real.shape == after.shape[:2] else torch.ones(after.shape[:2]).bool()
    torch.testing.assert_close(after[rows], before[rows], atol=1e-5, rtol=1e-5)


def implementations(model: Any) -> list[str | None]:
    configs = [module.config for module in model.modules() if hasattr(module, "config")]
    return [config._attn_implementation for config in configs]


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("family", FAMILIES)
def test_parity(family: str, training: bool) -> None:
    model = in_memory(family).train(training)
    inputs = inputs_of(model)
    sites = instrument(model)
    assert set(implementations(model)) == {ATTENTION_IMPLEMENTATION}
    assert_seen(model, sites, inputs)


@pytest.mark.parametrize("family", FAMILIES)
def test_training_and_after_a_step(family: str) -> None:
    """Gradients are those of the eager model, and the maps after a step those of the new weights."""
    model = in_memory(family).train()
    inputs = inputs_of(model)
    twin = eager_twin(model)
    sites = instrument(model)
    real = inputs.get("attention_mask", torch.ones(1, 1)).bool()
    for each in (model, twin):
        with record() as trace:
            output = output_of(each(**inputs))
        rows = output[real] if output.shape[:2] == real.shape else output
        (rows * torch.randn(rows.shape, generator=torch.Generator().manual_seed(5))).sum().backward()
        assert len(trace) == (len(sites) if each is model else 0)
    gradients = {name: theirs.grad for name, theirs in twin.named_parameters() if theirs.grad is not None}
    largest = max(float(gradient.abs().max()) for gradient in gradients.values())
    for name, ours in model.named_parameters():
        assert (ours.grad is not None) is (name in gradients), name
        if ours.grad is not None:
            assert float((ours.grad - gradients[name]).abs().max()) < 1e-5 * largest, name
    torch.optim.SGD(model.parameters(), lr=0.02 / largest).step()
    assert_seen(model, sites, inputs)


def test_dropped_weights_are_recorded_before_they_are_dropped() -> None:
    model = in_memory("bert", attention_probs_dropout_prob=0.6)
    inputs = inputs_of(model)
    instrument(model)
    with record() as calm:
        model(**inputs)
    with record() as dropping:
        dropped = model.train()(**inputs)
    first = "encoder.0.self"  # what comes in is the same; the layers after it see what was dropped
    assert torch.equal(dropping[first].weights(), calm[first].weights())
    assert not torch.equal(dropping["encoder.1.self"].weights(), calm["encoder.1.self"].weights())
    for call in dropping:
        torch.testing.assert_close(call.weights().sum(dim=-1), torch.ones(2, 4, 9))
    assert not torch.equal(dropped.last_hidden_state, model(**inputs).last_hidden_state)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
def test_restored(family: str, implementation: str) -> None:
    model = in_memory(family)
    if implementation == "sdpa" and not model._supports_sdpa:
        implementation = "eager"
    model.set_attn_implementation(implementation)
    inputs = inputs_of(model)
    config, names, plain = model.config.to_dict(), implementations(model), output_of(model(**inputs))
    instrument(model)
    while_seen = output_of(model(**inputs))
    torch.testing.assert_close(while_seen, plain, atol=2e-5, rtol=1e-5)
    restore(model)
    assert torch.equal(output_of(model(**inputs)), plain)
    assert model.config.to_dict() == config
    assert implementations(model) == names
    assert all(site_of(module) is None for module in model.modules())
    with record() as trace:
        model(**inputs)
    assert trace.sites == ()


def test_each_stack_gets_back_its_own() -> None:
    model = clip()
    model.set_attn_implementation({"text_config": "eager", "vision_config": "sdpa"})
    before = implementations(model)
    assert {"eager", "sdpa"} <= set(before)
    instrument(model)
    assert set(implementations(model)) == {ATTENTION_IMPLEMENTATION}
    restore(model)
    assert implementations(model) == before


def clip() -> Any:
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 48}
    text = {**sizes, "vocab_size": 99, "max_position_embeddings": 16, "eos_token_id": 2}
    vision = {**sizes, "image_size": 16, "patch_size": 4}
    config = transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=16)
    return transformers.CLIPModel(config).eval()


def test_a_model_of_texts_and_pictures() -> None:
    model = clip()
    inputs = {"input_ids": torch.randint(3, 99, (2, 7)), "pixel_values": torch.randn(2, 3, 16, 16)}
    twin = eager_twin(model)
    sites = instrument(model)
    assert sites == ("encoder.0.self", "encoder.1.self", "vision.0.self", "vision.1.self")
    with record() as trace:
        model(**inputs)
    result = twin(**inputs, output_attentions=True)
    for stack, maps in (("encoder", result.text_model_output), ("vision", result.vision_model_output)):
        for layer, weights in enumerate(maps.attentions):
            got = trace[f"{stack}.{layer}.self"].weights()
            assert float((got - weights.detach()).abs().max()) < 1e-6


def test_a_writer_that_looks_at_pictures() -> None:
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 48}
    eyes = transformers.CLIPVisionConfig(**sizes, image_size=16, patch_size=8)
    words = transformers.LlamaConfig(**sizes, vocab_size=99)
    config = transformers.LlavaConfig(vision_config=eyes, text_config=words, image_token_index=98)
    model = transformers.LlavaForConditionalGeneration(config).eval()
    sites = instrument(model)
    ids = torch.tensor([[98, 98, 98, 98, 5, 6, 7]])  # a token for each patch, and three words
    with record() as trace:
        model(input_ids=ids, pixel_values=torch.randn(1, 3, 16, 16))
    assert trace.sites == sites == ("vision.0.self", "decoder.0.self")
    assert not trace["decoder.0.self"].weights().triu(diagonal=1).any()


def test_a_model_put_together_of_two() -> None:
    """Its parts are given new configs, of which their layers know nothing."""
    sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 48}
    encoder = transformers.BertModel(transformers.BertConfig(**sizes, vocab_size=99))
    reading = transformers.BertConfig(**sizes, vocab_size=99, is_decoder=True, add_cross_attention=True)
    model = transformers.EncoderDecoderModel(encoder=encoder, decoder=transformers.BertLMHeadModel(reading)).eval()
    before = implementations(model)
    sites = instrument(model)
    with record() as trace:
        model(input_ids=torch.tensor([[5, 6, 7]]), decoder_input_ids=torch.tensor([[8, 9]]))
    assert trace.sites == sites == ("encoder.0.self", "decoder.0.self", "decoder.0.cross")
    restore(model)
    assert implementations(model) == before


@pytest.mark.parametrize("family", ["gpt2", "llama", "gemma2", "t5", "marian"])
def test_writing_with_a_cache(family: str) -> None:
    model = in_memory(family)
    prompt = {name: each for name, each in inputs_of(model).items() if name != "decoder_input_ids"}
    options = {"max_new_tokens": 4, "min_new_tokens": 4, "do_sample": False}
    if not model.config.is_encoder_decoder:  # such are padded at the left
        prompt = {name: each.flip(-1) for name, each in prompt.items()}
    expected = model.generate(**prompt, **options)
    instrument(model)
    with record() as trace:
        written = model.generate(**prompt, **options)
    assert torch.equal(written, expected)
    steps = [call for call in trace if call.site.split("@")[0] == "decoder.1.self"]
    assert [call.num_queries for call in steps] == [1 if model.config.is_encoder_decoder else 9, 1, 1, 1]


def test_layers_recomputed_for_their_gradients_are_recorded_once() -> None:
    model = in_memory("llama").train()
    inputs = inputs_of(model)
    sites = instrument(model)
    model.activation_checkpointing_enable()
    with record() as trace:
        model(**inputs, use_cache=False).logits.square().mean().backward()
    assert trace.sites == sites
    assert model.model.layers[0].self_attn.q_proj.weight.grad.abs().max() > 0


@pytest.mark.parametrize("family", ["gpt2", "llama", "bert", "vit"])
def test_hearing_torch_too(family: str) -> None:
    """What is instrumented is recorded once; what is not is heard where it calls torch's kernel, with the same maps."""
    model = in_memory(family)
    inputs = inputs_of(model)
    with record(torch_calls=model) as heard:
        plain = output_of(model(**inputs))
    sites = instrument(model)
    with record(torch_calls=model) as trace:
        assert torch.equal(output_of(model(**inputs)), plain)
    assert trace.sites == sites
    assert [site.split(".", 1)[1] for site in heard.sites] == [site.split(".", 1)[1] for site in sites]
    for ours, theirs in zip(trace, heard, strict=True):
        torch.testing.assert_close(ours.weights(), theirs.weights(), atol=1e-6, rtol=0)


class Int8Linear(nn.Linear):
    """A linear layer that keeps a byte for each weight, and a scale for each row of them."""

    def __init__(self, layer: nn.Linear) -> None:
        super().__init__(layer.in_features, layer.out_features, layer.bias is not None, device="meta")
        scale = layer.weight.detach().abs().amax(dim=1, keepdim=True) / 127
        self.bias = layer.bias
        self.weight = nn.Parameter((layer.weight.detach() / scale).round().to(torch.int8), requires_grad=False)
        self.register_buffer("scale", scale)

    def forward(self, X: Tensor) -> Tensor:
        return nn.functional.linear(X, self.weight.to(X.dtype) * self.scale, self.bias)


@pytest.mark.parametrize("family", ["bert", "llama", "marian"])
def test_quantised_weights(family: str) -> None:
    model = in_memory(family)
    inputs = inputs_of(model)
    plain = output_of(model(**inputs))
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if type(child) is nn.Linear and name != "lm_head":
                setattr(module, name, Int8Linear(child))
    sites = instrument(model)
    with torch.no_grad():
        assert not torch.allclose(output_of(model(**inputs)), plain, atol=1e-4), "eight bits make a difference"
        assert_seen(model, sites, inputs)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_torchs_own_quantisation() -> None:
    model = torch.ao.quantization.quantize_dynamic(in_memory("bert"), {nn.Linear}, dtype=torch.qint8)
    assert_seen(model, instrument(model), inputs_of(model))


def test_a_model_within_another() -> None:
    """As adapters and wrappers for several devices hold it."""
    inner = in_memory("gpt2")
    model = nn.Sequential(nn.Identity(), nn.ModuleDict({"base": inner}))
    sites = instrument(model)
    assert sites == ("decoder.0.self", "decoder.1.self")
    assert_seen(inner, sites, inputs_of(inner))
    restore(model)
    assert site_of(inner.transformer.h[0].attn) is None


def test_instrumented_twice_and_restored_once() -> None:
    model = in_memory("gpt2")
    before = model.config._attn_implementation
    assert instrument(model) == instrument(model) == ("decoder.0.self", "decoder.1.self")
    restore(model)
    assert model.config._attn_implementation == before
    with pytest.raises(ValueError, match="restore: expected a model that was instrumented, got GPT2LMHeadModel"):
        restore(model)


def test_a_forgotten_model_is_not_kept_alive() -> None:
    model = in_memory("gpt2")
    instrument(model)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def sinking() -> Any:
    sizes = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "num_key_value_heads": 1}
    experts = {"head_dim": 8, "intermediate_size": 16, "num_local_experts": 2, "num_experts_per_tok": 1}
    return transformers.GptOssForCausalLM(transformers.GptOssConfig(**sizes, **experts, vocab_size=50))


def without_attention() -> Any:
    sizes = {"embedding_size": 8, "hidden_sizes": [8, 8], "depths": [1, 1]}
    return transformers.ResNetModel(transformers.ResNetConfig(**sizes))


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.Linear(2, 2), r"expected a model of transformers, got Linear; record\(torch_calls=True\) sees"),
        (lambda: "gpt2", r"expected a model of transformers, got str; record\(torch_calls=True\) sees"),
        (lambda: random_model("bloom"), "expected attention that can be set, got BloomForCausalLM"),
        (sinking, r"got attention sinks in GptOssForCausalLM: model\.layers\.0\.self_attn"),
        (without_attention, "expected a model with attention in layers, got ResNetModel"),
    ],
)
def test_refused_and_left_as_it_was(make: Any, message: str) -> None:
    model = make()
    before = implementations(model) if isinstance(model, nn.Module) else []
    with pytest.raises(ValueError, match=message):
        instrument(model)
    if isinstance(model, nn.Module):
        assert implementations(model) == before
        with pytest.raises(ValueError, match="restore: expected"):
            restore(model)


def test_an_error_leaves_nothing_behind() -> None:
    model = in_memory("bert")
    inputs = inputs_of(model)
    plain = model(**inputs).last_hidden_state
    sites = instrument(model)

    def fail(*_: Any) -> None:
        raise RuntimeError("of mine")

    hook = model.encoder.layer[1].attention.register_forward_pre_hook(fail)
    with pytest.raises(RuntimeError, match="of mine"), record() as broken:
        model(**inputs)
    hook.remove()
    assert broken.sites == sites[:1]
    with record() as trace:
        assert torch.equal(model(**inputs).last_hidden_state, plain)
    assert trace.sites == sites


def test_threads_on_one_model() -> None:
    """Each thread's recording is its own, also where its neighbour does not record."""
    model = in_memory("llama")
    instrument(model)
    batches = [torch.randint(4, 390, (1, 4 + i)) for i in range(6)]

    def run(i: int) -> tuple[Tensor, dict[str, Tensor]]:
        listens = record() if i % 2 else contextlib.nullcontext(Trace())
        with torch.no_grad(), listens as trace:
            logits = model(batches[i % 6], use_cache=False).logits
        return logits, {call.site: call.weights() for call in trace}

    serial = [run(i) for i in range(6)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(6) as threads:
            parallel = list(threads.map(run, range(60)))
    finally:
        sys.setswitchinterval(interval)
    for i, (logits, maps) in enumerate(parallel):
        expected, expected_maps = serial[i % 6]
        assert torch.equal(logits, expected)
        assert list(maps) == list(expected_maps) == (["decoder.0.self", "decoder.1.self"] if i % 2 else [])
        assert all(torch.equal(maps[site], expected_maps[site]) for site in maps)


def test_a_thread_that_does_not_record_is_not_recorded() -> None:
    model = in_memory("gpt2")
    instrument(model)
    with record() as trace:
        thread = threading.Thread(target=lambda: model(torch.tensor([[5, 6]])))
        thread.start()
        thread.join()
    assert trace.sites == ()


def projection_of(model: Any, site: str) -> Any:
    """The output projection of the layer at a site."""
    layer = next(module for module in model.modules() if site_of(module) == site)
    names = ("o_proj", "out_proj", "c_proj", "o", "dense")
    inner = [module for name, module in layer.named_modules() if name.rsplit(".", 1)[-1] in names]
    outer = [m for name, m in model.named_modules() if name.endswith(("attention.output.dense", "attention.o_proj"))]
    return inner[0] if inner else outer[int(site.split(".")[1])]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_head_that_is_off_is_its_columns_of_the_output_projection_at_zero(family: str) -> None:
    model = in_memory(family)
    sites, inputs = instrument(model), inputs_of(model)
    site = next((each for each in sites if each.endswith("1.cross")), sites[1])
    before = output_of(model(**inputs))
    with intervene({site: off(2)}):
        found = output_of(model(**inputs))
    with torch.no_grad():
        weight = projection_of(model, site).weight
        columns = weight.T if type(projection_of(model, site)).__name__ == "Conv1D" else weight
        width = columns.shape[1] // 4
        columns[:, 2 * width : 3 * width] = 0
    torch.testing.assert_close(found, output_of(model(**inputs)), atol=1e-6, rtol=0)
    assert float((found - before).detach().abs().max()) > 1e-3


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
