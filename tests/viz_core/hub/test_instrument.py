"""A model of transformers in memory: seen exactly, in evaluation and in training, and afterwards what it was."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import torch.nn.functional as F
import transformers
from torch import Tensor, nn

from tests.viz_core.hub.families import (
    assert_seen,
    eager_twin,
    implementations,
    in_memory,
    inputs_of,
    output_of,
)
from viz_core.hub import ATTENTION_IMPLEMENTATION, instrument, restore
from viz_core.trace import record


@pytest.mark.parametrize("family", ["gpt2", "t5"])
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


@pytest.mark.parametrize("uncounted", [False, True])
@pytest.mark.parametrize(("family", "cache"), [("gpt2", None), ("llama", "static"), ("gemma2", "static"), ("t5", None)])
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
        seen = min(step.shape[3], row + 1)
        torch.testing.assert_close(step[:, :, -1, :seen], weights[:, :, row, :seen], atol=1e-5, rtol=0)
        assert not step[:, :, -1, seen:].any()


@pytest.mark.parametrize("family", ["gpt2", "llama", "bert", "vit"])
def test_hearing_torch_too(family: str) -> None:
    """What is instrumented is recorded once; what is not is heard where it calls torch's kernel, with the same maps."""
    model = in_memory(family)
    inputs = inputs_of(model)
    with record(torch_calls=model) as torch_trace:
        plain = output_of(model(**inputs))
    sites = instrument(model)
    with record(torch_calls=model) as trace:
        assert torch.equal(output_of(model(**inputs)), plain)
    assert trace.sites == sites
    assert [site.split(".", 1)[1] for site in torch_trace.sites] == [site.split(".", 1)[1] for site in sites]
    for ours, theirs in zip(trace, torch_trace, strict=True):
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
