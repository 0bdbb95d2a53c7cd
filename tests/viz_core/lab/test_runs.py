"""Two models on one text, and one token's way through the layers, each against whole matrices."""

import copy
import json
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest
import torch
from PIL import Image

from tests.viz_core.hub.conftest import TinyModel
from tests.viz_core.hub.families import build_all
from tests.viz_core.hub.test_speech import ALIGNING, SOUND
from viz_core.hub import HubModel, HubRun, load_hub
from viz_core.lab.pictures import (
    count_samples,
    heads_measured,
    right_statistics,
    sample_pictures,
    token_in_layer,
    token_over_patches,
)
from viz_core.lab.runs import Window, compare_heads, over_time, windows
from viz_core.maps.measures import total_variation
from viz_core.maps.rollout import attention_rollout
from viz_core.models.vit import ViT
from viz_core.pretrained import Classification, ImageClassifier, load_classifier
from viz_core.pretrained.bleu import percentage_right
from viz_core.pretrained.classifier import PictureModel
from viz_core.pretrained.samples import SCENES, drawn_picture
from viz_core.runtime.assets import ASSETS
from viz_core.trace import intervene, off, record

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
        ("bloom", {}),
        ("bert", {}),
        ("t5", {}),
    ],
)
def test_windows_are_those_of_the_maps_whatever_the_setting(
    tiny_model: TinyModel, family: str, expected: dict[int, tuple[int, int]]
) -> None:
    model = tiny_model(family)
    run = model.run(TEXT)
    found = windows(model, run)
    assert {layer: (each.left, each.right) for each in found for layer in each.layers} == expected
    maps = run.maps[0]
    for call in maps.calls:
        offsets = [i - j for i, j in call.weights()[0, :, :, -len(maps.text_keys) :].amax(dim=0).nonzero().tolist()]
        assert (max(offsets), -min(offsets)) == expected.get(call.layer, (len(maps.text_keys) - 1, -min(offsets)))
    short = model.run("A")
    if len(short.tokens) <= 5:
        assert windows(model, short) == ()


def test_a_window_on_both_sides(tiny_model: TinyModel) -> None:
    model = tiny_model("bert")
    run = model.run(TEXT)
    n = len(run.tokens)
    visible = (torch.arange(n)[:, None] - torch.arange(n)).abs() <= 2
    source = replace(run.trace["encoder.0.self"].source, mask=visible[None, None])  # type: ignore[type-var]
    run.trace.put("encoder.0.self", source)
    assert windows(model, run) == (Window("encoder", 2, 2, (0,)),)


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


def without(run: HubRun, site: str) -> HubRun:
    trace = type(run.trace)()
    for call in run.trace:
        if call.site != site:
            trace.add(call.source, call.site)
    return replace(run, trace=trace)


def test_what_cannot_be_compared_says_why(tiny_model: TinyModel, tiny: Callable[[str], Path]) -> None:
    bert = tiny_model("bert").run(TEXT)
    assert compare_heads(bert, tiny_model("gpt2").run(TEXT, max_new_tokens=0)) == (), "no kind of maps in common"
    assert compare_heads(bert, tiny_model("roberta").run(TEXT))[0].apart == "tokens"
    assert compare_heads(bert, without(bert, "encoder.1.self"))[0].apart == "sizes"
    assert compare_heads(bert, tiny_model("albert").run(TEXT))[0].apart == "sizes"
    other = load_hub(tiny("bert"), device="cpu")
    for layer in other.engine.model.encoder.layer:  # two heads twice as wide
        layer.attention.self.num_attention_heads, layer.attention.self.attention_head_size = 2, 2 * WIDTH
    assert compare_heads(bert, other.run(TEXT))[0].apart == "sizes"


@pytest.fixture(scope="module")
def model(tiny: Callable[[str], Path]) -> HubModel:
    return load_hub(tiny("whisper"), device="cpu")


@pytest.fixture(scope="module")
def run(model: HubModel) -> HubRun:
    return model.run(sound=SOUND, max_new_tokens=9)


def test_words_over_time_and_what_the_silence_after_them_gets(model: HubModel, run: HubRun) -> None:
    weights, rest = over_time(model, run, [(0, 1), (1, 2)], [(3, 5), (5, 6)])
    maps = torch.stack([run.trace[f"decoder.{layer}.cross"].weights(head=head)[0] for layer, head in ALIGNING])
    for row, silence, span in zip(weights, rest, (slice(3, 5), slice(5, 6)), strict=True):
        whole = maps[:, span].mean(dim=(0, 1))
        torch.testing.assert_close(row, whole[:135])
        assert silence == pytest.approx(float(whole[135:].sum()), abs=1e-6)
        assert 0 < silence < 1


def run_of(layers: list[torch.Tensor], grid: tuple[int, int] = (1, 1), num_special: int = 1) -> Any:
    """A classification, as far as its maps go."""
    calls = [Mock(weights=Mock(return_value=layer[None])) for layer in layers]
    return Mock(spec=Classification, trace=calls, grid=grid, num_special=num_special)


def model_with(patch_size: tuple[int, int]) -> Any:
    return Mock(spec=PictureModel, patch_size=patch_size)


ANY = model_with((1, 1))


def random_layers(layers: int, heads: int, n: int) -> list[torch.Tensor]:
    return [torch.randn(heads, n, n).softmax(dim=-1) for _ in range(layers)]


@pytest.mark.parametrize("fuse", ["mean", "max", "min"])
@pytest.mark.parametrize("discard", [0.0, 0.4])
def test_a_tokens_maps_are_rows_of_the_matrices(fuse: str, discard: float) -> None:
    layers = random_layers(3, 4, 7)
    found = token_in_layer(ANY, run_of(layers), 5, 1, fuse, discard)  # type: ignore[arg-type]
    whole = attention_rollout(layers, fuse, discard)  # type: ignore[arg-type]
    assert torch.equal(found.rollout, whole[5])
    by_hand = {"mean": layers[1].mean(0), "max": layers[1].amax(0), "min": layers[1].amin(0)}[fuse]
    assert torch.equal(found.raw, by_hand[5])
    assert found.row_error == float((whole.sum(dim=-1) - 1).abs().max())


def small_run(grid: tuple[int, int]) -> Any:
    """A picture of 2 x 2 patches, run through a ViT of two layers and said to have a grid."""
    with torch.no_grad(), record() as trace:
        ViT(6, 3, 8, 12, 2, 2, 0.0, 0.0, num_channels=1).eval()(torch.randn(1, 1, 6, 6))
    return Mock(spec=Classification, trace=trace, grid=grid, num_special=1)


@pytest.mark.parametrize("token", [0, 3])
def test_maps_of_a_token_are_rows_of_the_weights(token: int) -> None:
    run = small_run((2, 2))
    maps = token_over_patches(ANY, run, token)
    assert maps.shape == (2, 2, 2, 2)
    for layer, call in enumerate(run.trace):
        assert torch.equal(maps[layer].flatten(start_dim=1), call.weights()[0, :, token, 1:])


def test_heads_that_look_evenly_and_at_themselves() -> None:
    """Over 2 x 2 patches of 3 x 3 pixels: a head that looks at itself is 0 away and certain, log2(4) bits if even."""
    itself, even = torch.eye(4), torch.full((4, 4), 0.25)
    measured = heads_measured(model_with((3, 3)), run_of([torch.stack([itself, even])], (2, 2), 0))
    assert measured["entropy"][0].tolist() == pytest.approx([0.0, 2.0])
    assert measured["distance"][0].tolist() == pytest.approx([0.0, (3 + 3 + 3 * math.sqrt(2)) / 4])


def test_what_is_refused() -> None:
    layers = random_layers(2, 2, 5)
    with pytest.raises(IndexError):
        token_in_layer(ANY, run_of(layers), 5, 0, "mean", 0.0)
    with pytest.raises(IndexError):
        token_in_layer(ANY, run_of(layers), 0, 2, "mean", 0.0)
    with pytest.raises(ValueError, match="discard_ratio"):
        token_in_layer(ANY, run_of(layers), 0, 0, "mean", 1.0)
    with pytest.raises(ValueError, match="special tokens"):
        heads_measured(model_with((1, 1)), run_of(layers, (3, 3)))
    with pytest.raises(ValueError, match="1 special tokens and 3 x 2 patches, a side of 7, got maps of 5 x 5"):
        token_over_patches(ANY, small_run((3, 2)), 0)


SHEET = ASSETS / "samples" / "fashion-mnist-test"


@pytest.fixture(scope="module")
def garments() -> ImageClassifier:
    return load_classifier("vit-fashion-mnist", "cpu")


def test_the_sheet_is_cut_row_by_row(garments: ImageClassifier) -> None:
    sheet = np.array(Image.open(SHEET.with_suffix(".png")))
    about = json.loads(SHEET.with_suffix(".json").read_text(encoding="utf-8"))
    assert (about["licence"], len(about["labels"])) == ("MIT", 1000)
    assert "Zalando SE" in about["copyright"]
    found = sample_pictures(garments, 43, 45)  # the fourth and fifth of the second row
    assert found.kind == "test"
    assert found.labels == tuple(map(int, about["labels"][43:45]))
    mean, std = garments.preparation.mean[0], garments.preparation.std[0]
    expected = (sheet[28:56, 3 * 28 : 4 * 28] / 255 - mean) / std
    np.testing.assert_allclose(found.pixels[0, 0], expected, atol=1e-5)


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


def test_where_no_test_picture_may_ship_there_are_drawn_ones() -> None:
    model = load_classifier("vit-cifar10", "cpu")
    assert count_samples(model.card.name, model.labels) == ("drawn", len(SCENES))
    assert count_samples("another", ("dog",)) == ("drawn", 0)
    found = sample_pictures(model, 2, 100)
    assert [model.labels[label] for label in found.labels] == list(SCENES[2:])
    torch.testing.assert_close(found.pixels[:1], model.prepare(drawn_picture(SCENES[2])).pixels)
