"""`instrument` on models in memory: in training, of several parts, shared, copied, refused; nothing stays behind."""

import copy
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn

from tests.viz_core.hub.conftest import deepseek_v4
from tests.viz_core.hub.families import (
    SIZES,
    assert_seen,
    eager_twin,
    hooks,
    implementations,
    in_memory,
    inputs_of,
    output_of,
    save_tokenizer,
)
from viz_core.hub import ATTENTION_IMPLEMENTATION, instrument, load_hub, restore
from viz_core.trace import load_trace, record, save_trace, site_of
from viz_core.view.grouping import group_calls
from viz_core.view.hub import open_run
from viz_core.view.requests import MapRequest, Part

IDS = torch.tensor([[5, 6, 7]])
SMALL = {**SIZES, "num_hidden_layers": 1, "vocab_size": 99}
SITES = ("encoder.0.self",)
LAYERS = ("decoder.0.self", "decoder.1.self")


def seen(model: Any) -> tuple[str, ...]:
    with torch.no_grad(), record() as trace:
        model(IDS)
    return trace.sites


@pytest.mark.parametrize("family", ["gpt2", "t5"])
def test_training_and_after_a_step(family: str) -> None:
    """Gradients are those of the eager model, and the maps after a step those of the new weights."""
    model = in_memory(family).train()
    inputs = inputs_of(model)
    twin = eager_twin(model)
    sites = instrument(model)
    real = inputs["attention_mask"].bool()
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


def test_a_model_of_texts_and_pictures_whose_stacks_differ() -> None:
    text = {**SIZES, "vocab_size": 99, "max_position_embeddings": 16, "eos_token_id": 2}
    vision = {**SIZES, "image_size": 16, "patch_size": 4}
    config = transformers.CLIPConfig(text_config=text, vision_config=vision, projection_dim=16)
    model = transformers.CLIPModel(config)
    model.set_attn_implementation({"text_config": "eager", "vision_config": "sdpa"})
    before = implementations(model)
    assert {"eager", "sdpa"} <= set(before)
    sites = instrument(model)
    assert sites == ("encoder.0.self", "encoder.1.self", "vision.0.self", "vision.1.self")
    assert set(implementations(model)) == {ATTENTION_IMPLEMENTATION}
    restore(model)
    assert implementations(model) == before


def test_a_model_put_together_of_two() -> None:
    """Its parts are given new configs, of which their layers know nothing."""
    encoder = transformers.BertModel(transformers.BertConfig(**SMALL))
    reading = transformers.BertConfig(**SMALL, is_decoder=True, add_cross_attention=True)
    model = transformers.EncoderDecoderModel(encoder=encoder, decoder=transformers.BertLMHeadModel(reading)).eval()
    before = implementations(model)
    sites = instrument(model)
    with record() as trace:
        model(input_ids=IDS, decoder_input_ids=torch.tensor([[8, 9]]))
    assert trace.sites == sites == ("encoder.0.self", "decoder.0.self", "decoder.0.cross")
    restore(model)
    assert implementations(model) == before


@pytest.mark.parametrize("family", ["llama", "bert", "vit"])
def test_recording_torchs_calls_too(family: str) -> None:
    """What is instrumented is recorded once; what is not, where it calls torch's kernel, with the same maps."""
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


# Models that share what is changed, copies of them, and who changes it as well


@pytest.fixture
def pair() -> Iterator[tuple[Any, Any]]:
    """Two models built from one config object."""
    config = transformers.BertConfig(**SMALL)
    models = transformers.BertModel(config), transformers.BertModel(config)
    before = implementations(models[0])
    yield models
    assert implementations(models[0]) == before, "what the first found, the last puts back"


@pytest.mark.parametrize("first", [0, 1])
def test_two_models_of_one_config(first: int, pair: tuple[Any, Any]) -> None:
    assert instrument(pair[0]) == instrument(pair[1]) == SITES
    gone, left = pair[first], pair[1 - first]
    restore(gone)
    assert seen(left) == SITES
    assert site_of(gone.encoder.layer[0].attention.self) is None
    restore(left)
    assert seen(left) == seen(gone) == ()


@pytest.mark.parametrize("whole_first", [False, True])
def test_a_model_and_its_body(whole_first: bool) -> None:
    model = in_memory("llama")
    before = implementations(model)
    order = [model, model.model] if whole_first else [model.model, model]
    for each in order:
        assert instrument(each) == LAYERS
    restore(order[0])
    assert seen(model) == LAYERS
    restore(order[1])
    assert implementations(model) == before
    assert all(site_of(module) is None for module in model.modules())


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
@pytest.mark.parametrize("family", ["bert", "bloom"])
def test_a_copy_is_restored_by_itself(family: str, copied: Any) -> None:
    model = in_memory(family)
    before = implementations(model)
    sites = instrument(model)
    other = copied(model)
    restore(model)
    assert (seen(model), seen(other)) == ((), sites)
    restore(other)
    assert implementations(other) == before
    assert all(site_of(module) is None for module in other.modules())
    assert hooks(other) == hooks(model) == 0


def test_who_sets_another_attention_instruments_again(pair: tuple[Any, Any]) -> None:
    model = pair[0]
    instrument(model)
    model.set_attn_implementation("eager")
    assert seen(model) == ()
    assert instrument(model) == instrument(model) == seen(model) == SITES
    restore(model)
    with pytest.raises(ValueError, match="restore: expected a model that was instrumented, got BertModel"):
        restore(model)


def test_a_class_of_a_notebook() -> None:
    """It has no module whose code could be read; the layers within it have."""
    namespace: dict[str, Any] = {"transformers": transformers, "torch": torch, "__name__": "a notebook"}
    cell = """
class Sorter(transformers.BertPreTrainedModel):
    def __init__(self, config):
        super().__init__(config)
        self.bert, self.head = transformers.BertModel(config), torch.nn.Linear(32, 2)
        self.post_init()

    def forward(self, ids):
        return self.head(self.bert(ids).pooler_output)
"""
    exec(cell, namespace)
    model = namespace["Sorter"](transformers.BertConfig(**SMALL)).eval()
    plain: Tensor = model(IDS)
    assert instrument(model) == seen(model) == SITES
    torch.testing.assert_close(model(IDS), plain)


def test_a_model_within_another() -> None:
    """As adapters and wrappers for several devices hold it."""
    inner = in_memory("gpt2")
    model = nn.Sequential(nn.Identity(), nn.ModuleDict({"base": inner}))
    assert instrument(model) == LAYERS
    assert_seen(inner, LAYERS, inputs_of(inner))
    restore(model)
    assert site_of(inner.transformer.h[0].attn) is None


@torch.no_grad()
def test_keys_that_are_no_tokens_have_names(tmp_path: Path) -> None:
    model = deepseek_v4()
    instrument(model)
    with record() as trace:
        model(torch.arange(3, 13)[None], use_cache=False)
    words = list("abcdefghij")
    save_trace(trace, tmp_path / "blocks.trace")
    for each in (trace, load_trace(tmp_path / "blocks.trace")):
        local, sparse, heavy = (group.key_tokens for group in group_calls(each, words))
        assert local == ("sink", *words)
        assert sparse == (*local, "a…d", "a…h")  # a block of compressed sparse attention covers the one before it too
        assert heavy == (*local, "a…d", "e…h")


def test_a_run_of_such_a_model_has_a_group_for_each_size(tmp_path: Path) -> None:
    deepseek_v4("DeepseekV4ForCausalLM", vocab_size=400, bos_token_id=1, eos_token_id=2).save_pretrained(tmp_path)
    save_tokenizer("bytes", tmp_path, ends=False)
    run = load_hub(tmp_path).run("The cat sat on the mat")
    groups, _ = open_run(run, "en")
    n = len(run.tokens)
    assert [len(group.key_tokens) for group in groups] == [n + 1, n + 1 + n // 4, n + 1 + n // 4]
    assert groups[1].key_tokens[n + 1] == groups[2].key_tokens[n + 1] != groups[2].key_tokens[n + 2]


@torch.no_grad()
def test_keys_before_the_text_are_counted_back_from_it() -> None:
    model = in_memory("llama")
    cache = transformers.DynamicCache(config=model.config)
    for layer in range(2):
        cache.update(torch.randn(1, 2, 3, 8), torch.randn(1, 2, 3, 8), layer)
    instrument(model)
    with record() as trace:
        model(torch.tensor([[5, 6]]), past_key_values=cache, attention_mask=torch.ones(1, 5))
    assert group_calls(trace, ["a", "b"])[0].key_tokens == ("-3", "-2", "-1", "a", "b")
    assert group_calls(trace, list("vwxyz"))[0].key_tokens == tuple("vwxyz")
    assert group_calls(trace)[0].key_tokens == tuple("01234")


PARTS = slice(0, 2), slice(2, 6)


@torch.no_grad()
def test_one_softmax_over_two_sequences_names_both() -> None:
    text = {**SIZES, "vocab_size": 99, "num_key_value_heads": 2, "head_dim": 8, "layer_types": ["full_attention"] * 2}
    vision = {**SIZES, "image_size": 16, "patch_size": 4}
    config = transformers.T5Gemma2Config(
        encoder={"text_config": text, "vision_config": vision, "mm_tokens_per_image": 4}, decoder=text
    )
    model = transformers.T5Gemma2Model(config).eval()
    instrument(model)
    with record() as trace:
        model(input_ids=torch.tensor([[5, 6, 7, 8]]), decoder_input_ids=torch.tensor([[5, 6]]))
    names = {"encoder": list("abcd"), "decoder": ["x", "y"]}
    joint = next(group for group in group_calls(trace, names) if group.calls[0].stack == "decoder")
    assert joint.key_tokens == ("x", "y", *"abcd")
    assert not joint.calls[0].weights(queries=0)[..., 1].any()  # y comes after x
    assert joint.calls[0].weights(queries=0)[..., 2:].all()
    own, other = group_calls(trace, names)[-2:]
    weights = joint.calls[1].weights()
    shares = [
        float(torch.cat([call.weights() for call in joint.calls])[..., part].sum(dim=-1).mean()) for part in PARTS
    ]
    assert (own.label, other.label) == tuple(
        f"{name} part ({share:.0%})" for name, share in zip(("self", "cross"), shares, strict=True)
    )
    assert (own.key_tokens, other.key_tokens) == (("x", "y"), tuple("abcd"))
    assert [group.calls[1].site for group in (own, other)] == ["decoder.1.self", "decoder.1.cross"]
    for group, part in zip((own, other), PARTS, strict=True):
        (sent,) = group.maps.parts([MapRequest(((1, 2),))])
        assert isinstance(sent, Part)
        assert torch.equal(torch.from_numpy(sent.array), weights[0, 2, :, part]), "weights of a part are as they were"
        assert not group.measures
