"""Every layer has a site or a reason; models that cannot be instrumented, and errors in a pass."""

import gc
import re
import warnings
import weakref
from typing import Any

import pytest
import torch
import transformers
from torch import nn

from tests.viz_core.hub.architectures import ARCHITECTURES, TABLE, build, layers_by_config
from tests.viz_core.hub.families import SIZES, implementations, in_memory, inputs_of
from viz_core.hub import coverage, instrument, restore
from viz_core.trace import find_sites, record


@pytest.mark.parametrize("architecture", sorted(ARCHITECTURES))
def test_layers_of_a_model_are_those_seen_and_those_named(architecture: str) -> None:
    """The config says how many there are; `instrument` gives the sites of some and warns of all others."""
    model = build(architecture)
    rows = coverage(model)
    seen = {(each.stack, each.layer) for each in rows if each.site and each.layer is not None}
    named = {(each.stack, each.layer) for each in rows if each.reason and each.layer is not None}
    assert len(seen | named) == layers_by_config(architecture)
    assert all(bool(each.site) != bool(each.reason) for each in rows)
    if not seen:
        with pytest.raises(ValueError, match="instrument: expected"):
            instrument(model)
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sites = instrument(model)
    warned = " ".join(str(each.message) for each in caught if "not recorded" in str(each.message))
    assert set(sites) == {each.site for each in rows if each.site}
    assert all(each.reason.rstrip(".") in warned for each in rows if each.reason)
    assert bool(warned) == any(each.reason for each in rows)


WRONG_MAPS = re.findall(
    r"```python\n(.*?)```", TABLE.with_name("wrong-maps.md").read_text(encoding="utf-8"), flags=re.DOTALL
)


@pytest.mark.parametrize("code", WRONG_MAPS)
@pytest.mark.filterwarnings("ignore")
def test_the_code_on_wrong_maps_shows_what_the_page_says(code: str, capsys: pytest.CaptureFixture[str]) -> None:
    exec(compile(code, "wrong-maps.md", "exec"), {})  # it ends with assertions
    assert capsys.readouterr().out


def test_stages_and_blocks_have_names_of_their_own() -> None:
    rows = coverage(build("swin"))
    assert [each.site for each in rows] == [
        f"encoder.{stage}.{block}.self" for stage, count in enumerate((2, 2, 6, 2)) for block in range(count)
    ]
    assert [each.layer for each in rows] == list(range(12))


class SlidingMixer(nn.Module):
    """Mixes tokens by a rule of its own, whatever it is."""

    def __init__(self) -> None:
        super().__init__()
        self.W = nn.Linear(8, 8)


KINDS = {"longformer": "windows", "gemma4_audio": "windows", "hiera": "windows", "yoso": "hashes"}
KINDS |= {"nystromformer": "landmarks", "groupvit": "groups", "rwkv": "channels"}


@pytest.mark.parametrize(("architecture", "code"), KINDS.items())
def test_what_else_a_layer_weighs_is_said(architecture: str, code: str) -> None:
    rows = [each for each in coverage(build(architecture)) if "Attention" in each.module]
    assert code in {each.code for each in rows if each.site is None} <= {code, "outside"}


def test_a_hybrid_names_its_other_layers_and_a_softmax_that_gates_channels_is_no_map() -> None:
    with pytest.warns(UserWarning, match=re.escape("layers 0 to 1, 3 to 4")) as warned:
        instrument(build("recurrent_gemma"))
    assert "RecurrentGemmaRglru weighs earlier tokens separately in each channel" in str(warned[0].message)
    assert not any(each.site for each in coverage(build("patchtsmixer")))


def test_a_plain_model_has_rows_too() -> None:
    blocks = nn.ModuleList([nn.TransformerEncoderLayer(8, 2, 8), SlidingMixer(), nn.Linear(8, 8)])
    model = nn.ModuleDict({"layers": blocks, "pool": nn.MultiheadAttention(8, 2)})
    assert [(each.stack, each.layer, each.site) for each in coverage(model)] == [
        ("layers", 0, "encoder.0.self"),
        ("layers", 1, None),
        ("layers", 2, None),
        ("", None, None),
    ]
    assert [each.reason for each in coverage(model)] == [
        "",
        "SlidingMixer mixes tokens by a rule of its own; it has no map that is recorded.",
        "No attention is known in Linear.",
        "MultiheadAttention at pool is in none of the lists of layers.",
    ]


class DiffLlamaSdpaAttention(nn.Module):
    """As before transformers 5: what it uses is a difference of its softmaxes."""

    lambda_init = 0.2

    def forward(self, X: torch.Tensor) -> torch.Tensor:
        first, second = torch.softmax(torch.stack([X @ X.mT, X @ X.mT / 2]), dim=-1)
        return (first - self.lambda_init * second) @ X


def test_a_difference_of_softmaxes_in_code_of_its_own_is_not_taken_for_one() -> None:
    model = transformers.GPT2Model(transformers.GPT2Config(n_layer=2, n_embd=8, n_head=2, vocab_size=9))
    model.h[0].attn = DiffLlamaSdpaAttention()
    assert [each.code for each in coverage(model)] == ["difference", ""]


class FactorAttn(nn.Module):
    """Weighs channels by a softmax, not keys."""

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


def test_a_forgotten_model_is_not_kept_alive() -> None:
    model = in_memory("gpt2")
    instrument(model)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def without_attention() -> Any:
    sizes = {"embedding_size": 8, "hidden_sizes": [8, 8], "depths": [1, 1]}
    return transformers.ResNetModel(transformers.ResNetConfig(**sizes))


def longformer() -> Any:
    return transformers.LongformerModel(transformers.LongformerConfig(**SIZES, attention_window=4, vocab_size=99))


@pytest.mark.usefixtures("shapes_unchecked")
@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: nn.Linear(2, 2), r"expected a model of transformers, got Linear; record\(torch_calls=True\) sees"),
        (lambda: "gpt2", r"expected a model of transformers, got str; record\(torch_calls=True\) sees"),
        (longformer, "expected attention that weighs all keys at once, got LongformerModel"),
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


@pytest.mark.parametrize("family", ["llama", "t5", "vit"])
def test_a_request_for_maps_says_what_to_do_instead(family: str) -> None:
    model = in_memory(family)
    instrument(model)
    warned = pytest.warns(UserWarning, match="output_attentions gives no maps of an instrumented model")
    with warned as caught:
        model(**inputs_of(model), output_attentions=True)
    assert len(caught) == 1
    restore(model)
    model.set_attn_implementation("eager")
    model.config.output_attentions = True
    instrument(model)
    with warned:
        model(**inputs_of(model))
    restore(model)
    own_code = in_memory("bloom")
    instrument(own_code)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model(**inputs_of(model))
        assert len(own_code(**inputs_of(own_code), output_attentions=True).attentions) == 2
