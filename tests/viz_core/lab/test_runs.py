"""Two models on one text, and one token's way through the layers, each against whole matrices."""

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import torch

from tests.viz_core.hub.conftest import TinyModel
from tests.viz_core.hub.families import build_all
from viz_core.hub import HubModel, load_hub
from viz_core.lab.pictures import right_statistics, sample_pictures, token_in_layer
from viz_core.lab.runs import compare_heads, windows
from viz_core.maps.measures import total_variation
from viz_core.maps.rollout import attention_rollout
from viz_core.pretrained import Classification, ImageClassifier, load_classifier
from viz_core.pretrained.bleu import percentage_right
from viz_core.pretrained.classifier import PictureModel
from viz_core.trace import intervene, off

TEXT = "The cat sat on the mat and looked at the dog."
WIDTH = 8  # of a head


def changed(model: HubModel, edit: Callable[[torch.nn.Module], None]) -> HubModel:
    """The same model, its weights changed by hand."""
    network = copy.deepcopy(model.engine.model)
    with torch.no_grad():
        edit(network)
    return HubModel(model.card, replace(model.engine, model=network))


def other_query(network: torch.nn.Module, layer: int = 0, head: int = 2) -> None:
    """W_q of one head."""
    rows = network.encoder.layer[layer].attention.self.query.weight[head * WIDTH : (head + 1) * WIDTH]
    rows.copy_(torch.randn_like(rows))


def test_a_head_whose_queries_were_changed_is_named_first_and_its_layer_stays(tiny_model: TinyModel) -> None:
    base = tiny_model("bert")
    tuned = changed(base, other_query)
    first, second = base.run(TEXT), tuned.run(TEXT)
    (kind,) = compare_heads(first, second)
    assert (kind.id, kind.apart, len(kind.heads)) == ("encoder-self", "", 8)
    assert kind.heads[0][1:] == (0, 2)
    assert kind.heads[0].change > 0.05
    assert [one.change for one in kind.heads if one.layer == 0][1:] == [0.0, 0.0, 0.0]
    assert all(one.change > 0 for one in kind.heads if one.layer == 1), "later layers read what it wrote"
    own, other = (run.trace["encoder.0.self"].weights(head=2)[0] for run in (first, second))
    assert kind.heads[0].change == pytest.approx(float((own - other).abs().sum()) / 2 / len(own), abs=1e-6)
    assert compare_heads(first, first)[0].heads[0] == (0.0, 0, 0)


@pytest.mark.parametrize(
    ("family", "expected"),
    [
        ("mistral", {0: (4, 0), 1: (4, 0)}),
        ("gemma2", {0: (4, 0)}),  # every second layer has none
        ("gpt-oss", {0: (4, 0)}),  # a sink stands before the tokens
        ("bert", {}),
    ],
)
def test_windows_are_those_of_the_maps_whatever_the_setting(tiny_model, family, expected):
    model = tiny_model(family)
    run = model.run(TEXT)
    found = windows(model, run)
    assert {layer: (each.left, each.right) for each in found for layer in each.layers} == expected
    maps = run.maps[0]
    for call in maps.calls:
        offsets = [i - j for i, j in call.weights()[0, :, :, -len(maps.text_keys) :].amax(dim=0).nonzero().tolist()]
        assert (max(offsets), -min(offsets)) == expected.get(call.layer, (len(maps.text_keys) - 1, -min(offsets)))


def test_signed_rows_are_scaled_before_they_are_compared(tmp_path: Path) -> None:
    base = load_hub(build_all(("qwen3_5_text",), tmp_path) / "qwen3_5_text", device="cpu")

    def negate(network: torch.nn.Module) -> None:
        network.model.layers[0].linear_attn.in_proj_qkv.weight[:16].mul_(-1)  # the queries of all heads

    first, second = base.run(TEXT, max_new_tokens=0), changed(base, negate).run(TEXT, max_new_tokens=0)
    (kind,) = compare_heads(first, second)
    own, other = (run.trace["decoder.0.self"].weights()[0] for run in (first, second))
    own, other = (weights / weights.abs().sum(dim=-1, keepdim=True) for weights in (own, other))
    expected = total_variation(own, other)
    assert all(0 <= one.change <= 1 + 1e-6 for one in kind.heads)
    for one in kind.heads:
        if one.layer == 0:
            assert one.change == pytest.approx(float(expected[one.head]), abs=1e-6)


def test_what_a_decoder_goes_on_with_does_not_hide_what_both_read(tiny_model: TinyModel) -> None:
    model = tiny_model("gpt2")
    short, long = (model.run("The cat sat", max_new_tokens=count) for count in (0, 6))
    (kind,) = compare_heads(short, long)
    assert kind.apart == ""
    assert max(one.change for one in kind.heads) < 1e-6
    assert compare_heads(short, model.run("The dog sat"))[0].apart == "tokens"


@pytest.mark.parametrize("fuse", ["mean", "max", "min"])
@pytest.mark.parametrize("discard", [0.0, 0.4])
def test_a_tokens_maps_are_rows_of_the_matrices(fuse: str, discard: float) -> None:
    layers = [torch.randn(4, 7, 7).softmax(dim=-1) for _ in range(3)]
    calls = [Mock(weights=Mock(return_value=layer[None])) for layer in layers]
    run: Any = Mock(spec=Classification, trace=calls, grid=(1, 1), num_special=1)
    model: Any = Mock(spec=PictureModel, patch_size=(1, 1))
    found = token_in_layer(model, run, 5, 1, fuse, discard)  # type: ignore[arg-type]
    whole = attention_rollout(layers, fuse, discard)  # type: ignore[arg-type]
    assert torch.equal(found.rollout, whole[5])
    by_hand = {"mean": layers[1].mean(0), "max": layers[1].amax(0), "min": layers[1].amin(0)}[fuse]
    assert torch.equal(found.raw, by_hand[5])
    assert found.row_error == float((whole.sum(dim=-1) - 1).abs().max())


@pytest.fixture(scope="module")
def garments() -> ImageClassifier:
    return load_classifier("vit-fashion-mnist", "cpu")


def test_how_often_it_is_right_is_what_it_says_of_each(garments: ImageClassifier) -> None:
    """Close to the score of the whole split, and another one where heads are off."""
    rows = right_statistics(garments, (), 0, 60)
    assert percentage_right(rows.sum(axis=0)) > 80
    heads = (("encoder.0.self", 0), ("encoder.0.self", 3))
    found = right_statistics(garments, heads, 0, 60)
    pictures = sample_pictures(garments, 0, 60)
    with intervene({"encoder.0.self": off(0, 3)}):
        predicted = garments.predict(pictures.pixels).argmax(dim=-1)
    assert found[:, 0].tolist() == (predicted == torch.tensor(pictures.labels)).double().tolist()
    assert found[:, 1].tolist() == [1.0] * 60
    assert found[:, 0].sum() < rows[:, 0].sum()
