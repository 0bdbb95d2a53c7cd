"""Two models, one text: a head that was changed by hand is found, and what cannot be compared says why."""

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.viz_core.hub.families import build_all
from tests.viz_core.hub.test_speech import ALIGNING, SOUND
from viz_core.hub import HubModel, HubRun, load_hub
from viz_core.lab.runs import Window, compare_heads, over_time, windows
from viz_core.maps.measures import total_variation

TinyModel = Callable[[str], HubModel]
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


def test_every_kind_of_an_encoder_decoder_is_compared(tiny_model: TinyModel) -> None:
    model = tiny_model("t5")
    one, other = (model.run("the cat", target=target) for target in ("the house", "the river"))
    found = {kind.id: kind for kind in compare_heads(one, other)}
    assert {name: kind.apart for name, kind in found.items()} == {
        "encoder-self": "",
        "decoder-self": "tokens",
        "decoder-cross": "tokens",
    }
    assert max(one.change for one in found["encoder-self"].heads) == 0.0


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
