"""`instrument` on models in memory: shared, copied, refused; and that every layer has a site or a reason."""

import copy
import gc
import operator
import pickle
import re
import warnings
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from torch import nn

from tests.viz_core.hub import families
from tests.viz_core.hub.conftest import deepseek_v4
from viz_core.hub import coverage, instrument, restore
from viz_core.trace import find_sites, load_trace, record, save_trace, site_of
from viz_core.view.grouping import group_calls
from viz_core.view.requests import MapRequest, Part

IDS = torch.tensor([[5, 6, 7]])
SMALL = {**families.SIZES, "num_hidden_layers": 1, "vocab_size": 99}
SITES = ("encoder.0.self",)
LAYERS = ("decoder.0.self", "decoder.1.self")


def seen(model: Any) -> tuple[str, ...]:
    with torch.no_grad(), record() as trace:
        model(IDS)
    return trace.sites


@pytest.mark.parametrize("family", ["gpt2", "t5"])
def test_training_and_after_a_step(family: str) -> None:
    """Gradients are those of the eager model, and the maps after a step those of the new weights."""
    model = families.in_memory(family).train()
    inputs, twin = families.inputs_of(model), families.eager_twin(model)
    instrument(model)
    real = inputs["attention_mask"].bool()
    for each in (model, twin):
        output = families.output_of(each(**inputs))
        rows = output[real] if output.shape[:2] == real.shape else output
        (rows * torch.randn(rows.shape, generator=torch.Generator().manual_seed(5))).sum().backward()
    gradients = {name: theirs.grad for name, theirs in twin.named_parameters() if theirs.grad is not None}
    largest = max(float(gradient.abs().max()) for gradient in gradients.values())
    assert {name for name, ours in model.named_parameters() if ours.grad is not None} == {*gradients}
    for name, gradient in gradients.items():
        assert float((model.get_parameter(name).grad - gradient).abs().max()) < 1e-5 * largest, name
    torch.optim.SGD(model.parameters(), lr=0.02 / largest).step()
    with record() as trace:
        model(**inputs)
    maps = families.maps_of(families.eager_twin(model)(**inputs, output_attentions=True), "decoder")
    for site, weights in maps.items():
        rows = real if weights.shape[2] == real.shape[1] else torch.ones(weights.shape[::2], dtype=torch.bool)
        assert float((trace[site].weights() - weights).abs().amax(dim=(1, 3))[rows].max()) < 1e-6, site


def test_a_model_put_together_of_two() -> None:
    encoder = transformers.BertModel(transformers.BertConfig(**SMALL))
    reading = transformers.BertConfig(**SMALL, is_decoder=True, add_cross_attention=True)
    model = transformers.EncoderDecoderModel(encoder=encoder, decoder=transformers.BertLMHeadModel(reading)).eval()
    before = families.implementations(model)
    sites = instrument(model)
    with record() as trace:
        model(input_ids=IDS, decoder_input_ids=torch.tensor([[8, 9]]))
    assert trace.sites == sites == ("encoder.0.self", "decoder.0.self", "decoder.0.cross")
    restore(model)
    assert families.implementations(model) == before


@pytest.mark.parametrize("family", ["llama", "bert", "vit"])
def test_recording_torchs_calls_too(family: str) -> None:
    """What is instrumented is recorded once; what is not, where it calls torch's kernel, with the same maps."""
    model = families.in_memory(family)
    inputs = families.inputs_of(model)
    with record(torch_calls=model) as torch_trace:
        plain = families.output_of(model(**inputs))
    sites = instrument(model)
    with record(torch_calls=model) as trace:
        assert torch.equal(families.output_of(model(**inputs)), plain)
    assert trace.sites == sites
    for ours, theirs in zip(trace, torch_trace, strict=True):
        assert (ours.layer, ours.kind) == (theirs.layer, theirs.kind)
        torch.testing.assert_close(ours.weights(), theirs.weights(), atol=1e-6, rtol=0)


# Models that share what is changed, copies of them, and who changes it as well


@pytest.fixture
def pair() -> Iterator[tuple[Any, Any]]:
    config = transformers.BertConfig(**SMALL)
    models = transformers.BertModel(config), transformers.BertModel(config)
    before = families.implementations(models[0])
    yield models
    assert families.implementations(models[0]) == before, "what the first found, the last puts back"


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
    model = families.in_memory("llama")
    before = families.implementations(model)
    order = [model, model.model] if whole_first else [model.model, model]
    for each in order:
        assert instrument(each) == LAYERS
    restore(order[0])
    assert seen(model) == LAYERS
    restore(order[1])
    assert families.implementations(model) == before
    assert all(site_of(module) is None for module in model.modules())


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_a_copy_is_restored_by_itself(copied: Any) -> None:
    model = families.in_memory("bloom")
    before = families.implementations(model)
    sites = instrument(model)
    other = copied(model)
    restore(model)
    assert (seen(model), seen(other)) == ((), sites)
    restore(other)
    assert families.implementations(other) == before
    assert all(site_of(module) is None for module in other.modules())
    assert families.hooks(other) == families.hooks(model) == 0


def test_a_model_within_another() -> None:
    inner = families.in_memory("gpt2")
    outer = nn.Sequential(nn.Identity(), nn.ModuleDict({"base": inner}))
    assert instrument(outer) == seen(inner) == LAYERS
    restore(outer)
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


@torch.no_grad()
def test_keys_before_the_text_are_counted_back_from_it() -> None:
    model = families.in_memory("llama")
    cache = transformers.DynamicCache(config=model.config)
    for layer in range(2):
        cache.update(torch.randn(1, 2, 3, 8), torch.randn(1, 2, 3, 8), layer)
    instrument(model)
    with record() as trace:
        model(torch.tensor([[5, 6]]), past_key_values=cache, attention_mask=torch.ones(1, 5))
    for words, names in ((["a", "b"], ("-3", "-2", "-1", "a", "b")), ([*"vwxyz"], (*"vwxyz",)), (None, (*"01234",))):
        assert group_calls(trace, words)[0].key_tokens == names


@torch.no_grad()
def test_one_softmax_over_two_sequences_names_both() -> None:
    text = {
        **families.SIZES,
        "vocab_size": 99,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "layer_types": ["full_attention"] * 2,
    }
    encoder = {"text_config": text, "vision_config": families.PICTURE, "mm_tokens_per_image": 4}
    model = transformers.T5Gemma2Model(transformers.T5Gemma2Config(encoder=encoder, decoder=text)).eval()
    instrument(model)
    with record() as trace:
        model(input_ids=torch.tensor([[5, 6, 7, 8]]), decoder_input_ids=torch.tensor([[5, 6]]))
    groups = group_calls(trace, {"encoder": list("abcd"), "decoder": ["x", "y"]})
    joint = next(group for group in groups if group.calls[0].stack == "decoder")
    assert joint.key_tokens == ("x", "y", *"abcd")
    assert not joint.calls[0].weights(queries=0)[..., 1].any()  # y comes after x
    assert joint.calls[0].weights(queries=0)[..., 2:].all()
    both = torch.cat([call.weights() for call in joint.calls])
    for group, kind, part in zip(groups[-2:], ("self", "cross"), (slice(0, 2), slice(2, 6)), strict=True):
        assert group.label == f"{kind} part ({float(both[..., part].sum(dim=-1).mean()):.0%})"
        assert group.key_tokens == joint.key_tokens[part]
        assert group.calls[1].site == f"decoder.1.{kind}"
        (sent,) = group.maps.parts([MapRequest(((1, 2),))])
        assert isinstance(sent, Part)
        weights = joint.calls[1].weights()[0, 2, :, part]
        assert torch.equal(torch.from_numpy(sent.array), weights), "weights of a part are as they were"


DOCS = Path(__file__).resolve().parents[3] / "docs"
WRONG_MAPS = re.findall(r"```python\n(.*?)```", (DOCS / "wrong-maps.md").read_text(encoding="utf-8"), flags=re.DOTALL)
# Where the config of each architecture says how many layers it has: numbers, or lists of them, to be added up.
COUNTS = {
    **dict.fromkeys("gemma2 jamba lfm2 mamba2 nemotron_h roformer wavlm yolos zamba2".split(), "num_hidden_layers"),
    **{"bart": "encoder_layers decoder_layers", "distilbert": "n_layers", "lxmert": "l_layers x_layers r_layers"},
    **dict.fromkeys(("clip", "llava"), "text_config.num_hidden_layers vision_config.num_hidden_layers"),
    "swinv2": "depths",
}


def build(architecture: str) -> nn.Module:
    with torch.device("meta"):
        return transformers.AutoModel.from_config(transformers.CONFIG_MAPPING[architecture]())


@pytest.mark.parametrize("architecture", COUNTS)
def test_layers_of_a_model_are_those_seen_and_those_named(architecture: str) -> None:
    model, config = build(architecture), transformers.CONFIG_MAPPING[architecture]()
    rows = coverage(model)
    counts = [operator.attrgetter(field)(config) for field in COUNTS[architecture].split()]
    layers = {(each.stack, each.layer) for each in rows if each.layer is not None}
    assert len(layers) == sum(sum(each) if isinstance(each, list | tuple) else each for each in counts)
    assert all(bool(each.site) != bool(each.reason) for each in rows)
    if not any(each.site for each in rows):
        with pytest.raises(ValueError, match="instrument: expected"):
            instrument(model)
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert set(instrument(model)) == {each.site for each in rows if each.site}
    warned = " ".join(str(each.message) for each in caught if "not recorded" in str(each.message))
    assert all(each.reason.rstrip(".") in warned for each in rows if each.reason)
    assert bool(warned) == any(each.reason for each in rows)


@pytest.mark.parametrize("code", WRONG_MAPS)
@pytest.mark.filterwarnings("ignore")
def test_the_code_on_wrong_maps_shows_what_the_page_says(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(code, "wrong-maps.md", "exec"), {})  # it ends with assertions
    assert capsys.readouterr().out


class SlidingMixer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.W = nn.Linear(8, 8)


def test_a_plain_model_has_rows_too() -> None:
    blocks = nn.ModuleList([nn.TransformerEncoderLayer(8, 2, 8), SlidingMixer(), nn.Linear(8, 8)])
    model = nn.ModuleDict({"layers": blocks, "pool": nn.MultiheadAttention(8, 2)})
    assert [(each.stack, each.layer, each.site) for each in coverage(model)] == [
        ("layers", 0, "encoder.0.self"),
        ("layers", 1, None),
        ("layers", 2, None),
        ("", None, None),
    ]
    assert "SlidingMixer mixes tokens by a rule of its own" in coverage(model)[1].reason


class FactorAttn(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.W = nn.Linear(8, 8)

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        return self.W(X) @ torch.softmax(X.mT @ X, dim=-1)


def test_a_layer_that_ran_unseen_is_named_after_the_recording() -> None:
    model = nn.Sequential(nn.TransformerEncoderLayer(8, 2, 8, batch_first=True), FactorAttn())
    assert list(find_sites(model).values()) == ["encoder.0.self", "encoder.1.self"]
    X = torch.randn(2, 3, 8)
    with pytest.warns(UserWarning, match="record: not recorded: layers 1 of .*FactorAttn"), record(torch_calls=model):
        model(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with record(torch_calls=model):
            model[0](X)  # the other did not run


def test_a_deleted_model_is_freed() -> None:
    model = families.in_memory("gpt2")
    instrument(model)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.Linear(2, 2), r"expected a model of transformers, got Linear; record\(torch_calls=True\) sees"),
        (lambda: "gpt2", r"expected a model of transformers, got str; record\(torch_calls=True\) sees"),
        (lambda: build("longformer"), "expected attention that weighs all keys at once, got LongformerModel"),
        (lambda: build("resnet"), "expected a model with attention in layers, got ResNetModel"),
    ],
)
def test_refused_and_left_as_it_was(make: Any, message: str) -> None:
    model = make()
    before = families.implementations(model) if isinstance(model, nn.Module) else []
    with pytest.raises(ValueError, match=message):
        instrument(model)
    if isinstance(model, nn.Module):
        assert families.implementations(model) == before
        with pytest.raises(ValueError, match="restore: expected"):
            restore(model)


def test_a_request_for_maps_says_what_to_do_instead() -> None:
    model = families.in_memory("t5")
    instrument(model)
    warned = pytest.warns(UserWarning, match="output_attentions gives no maps of an instrumented model")
    with warned as caught:
        model(**families.inputs_of(model), output_attentions=True)
    assert len(caught) == 1
