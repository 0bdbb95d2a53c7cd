"""Differential attention and the mLSTM as they are used, and window settings, against models' own code."""

from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from tests.viz_core.hub import test_linear_attention as linear
from tests.viz_core.hub.families import hybrid, in_memory
from tests.viz_core.hub.measured import difference
from tests.viz_core.hub.windows import CASES, PAGE, build, recorded, seen, setting
from viz_core.hub import instrument
from viz_core.maps.contributions import contribution_shares, contribution_sum
from viz_core.maps.fingerprints import measure_layer
from viz_core.maps.score_products import score_products
from viz_core.trace import (
    gate,
    head_outputs,
    intervene,
    knock_out,
    load_trace,
    off,
    record,
    save_trace,
    sharpen,
    uniform,
)

IDS = torch.tensor([[5, 9, 3, 17, 8, 4], [0, 0, 7, 12, 30, 6]])
MASK = (IDS > 0).long()
SITE = "decoder.1.self"


@pytest.fixture(scope="module")
def model() -> Any:
    made = in_memory("diffllama", num_attention_heads=8, num_key_value_heads=4, head_dim=4)
    for name, weights in made.named_parameters():
        if weights.dim() > 1 or "lambda" in name:
            nn.init.normal_(weights, std=0.3)
    return made


@pytest.fixture(scope="module")
def eager(model: Any) -> tuple[list[Tensor], Tensor]:
    """Each layer's difference of softmaxes, and the logits."""
    model.set_attn_implementation("eager")
    with torch.no_grad():
        result = model(IDS, attention_mask=MASK, output_attentions=True)
    maps = [difference(each, model, f"decoder.{i}.self").detach() for i, each in enumerate(result.attentions)]
    instrument(model)
    return maps, result.logits


def test_maps_and_outputs(model: Any, eager: tuple[list[Tensor], Tensor], tmp_path: Path) -> None:
    written: list[Tensor] = []
    outputs: list[Tensor] = []
    own = model.model.layers[1].self_attn
    hooks = [
        own.groupnorm.register_forward_pre_hook(lambda _, inputs: written.append(inputs[0].transpose(1, 2))),
        own.o_proj.register_forward_hook(lambda _layer, _inputs, output: outputs.append(output)),
    ]
    with torch.no_grad(), record(values=True) as trace:
        logits = model(IDS, attention_mask=MASK).logits
    for hook in hooks:
        hook.remove()
    assert trace.sites == ("decoder.0.self", SITE)
    assert all(call.signed and call.num_heads == 4 for call in trace)
    real = MASK.bool()
    for call, expected in zip(trace, eager[0], strict=True):
        assert float(expected.min()) < -0.01, "maps without a negative weight would prove nothing"
        assert float((call.weights() - expected).abs().amax(dim=(1, 3))[real].max()) < 3e-6
    torch.testing.assert_close(logits[real], eager[1][real], atol=1e-5, rtol=0)
    call = trace[SITE]
    torch.testing.assert_close(head_outputs(call).transpose(1, 2)[real], written[0].transpose(1, 2)[real])
    total = contribution_sum(call, own.o_proj)
    torch.testing.assert_close(total[real], outputs[0][real], atol=1e-5, rtol=1e-4)
    contribution_shares(trace, model)
    torch.testing.assert_close(call.text(1).weights(), call.weights()[1:, :, 2:, 2:])
    save_trace(trace, tmp_path / "difference.safetensors")
    loaded = load_trace(tmp_path / "difference.safetensors")[SITE]
    assert loaded.signed
    assert torch.equal(loaded.weights(), call.weights())
    assert "entropy" not in measure_layer(call, 1).fingerprints[0]
    with pytest.raises(ValueError, match="expected queries and keys, got difference of softmaxes"):
        score_products(call, 0, 1, 0)


@pytest.mark.usefixtures("eager")
def test_heads_are_pairs_of_softmaxes(model: Any) -> None:
    edits = {SITE: [off(1), gate(2, 0.5)]}
    projection, given = model.model.layers[1].self_attn.groupnorm, list[Tensor]()
    hook = projection.register_forward_pre_hook(lambda _, inputs: given.append(inputs[0].detach()))
    with record(values=True) as plain, torch.no_grad():
        model(IDS)
    with intervene(edits), record(values=True) as trace:
        model(IDS).logits.sum().backward()
    hook.remove()
    before, after = head_outputs(plain[SITE]), head_outputs(trace[SITE])
    assert not after[:, 1].any()
    assert not trace[SITE].weights()[:, 1].any()
    torch.testing.assert_close(after[:, 2], before[:, 2] / 2)
    assert torch.equal(after[:, [0, 3]], before[:, [0, 3]])
    torch.testing.assert_close(given[1].transpose(1, 2), after, atol=1e-5, rtol=1e-4)
    assert model.model.layers[1].self_attn.lambda_q1.grad.abs().sum() > 0
    with pytest.raises(ValueError, match="expected off or gate"), intervene({SITE: uniform(0)}):
        model(IDS)
    with pytest.raises(ValueError, match="expected no differentiable"), record(differentiable=True):
        model(IDS)


@pytest.mark.usefixtures("eager")
def test_parts_of_a_map_are_those_of_the_whole(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with record() as trace, torch.no_grad():
        model(IDS)
    call = trace[SITE]
    whole, small = call.weights(), call.overview(3)
    assert torch.equal(call.weights(queries=3, keys=slice(3, 6)), whole[:, :, 3, 3:])
    monkeypatch.setattr("viz_core.trace.source._BLOCK_SCORES", 2 * 4 * 6 * 2)  # two rows a block
    assert torch.equal(call.weights(), whole)
    assert torch.equal(call.overview(3), small)


NO_MAPS = ("longformer", "longt5")


@pytest.mark.parametrize(("family", "options"), CASES, ids=[f"{case[0]} {setting(case[1])}" for case in CASES])
@pytest.mark.filterwarnings("ignore")
def test_the_map_shows_the_keys_that_reach_the_output(family: str, options: dict[str, Any]) -> None:
    model = build(family, options)
    found = seen(model)
    assert f"| {family} | {setting(options)} | {found} |" in PAGE.read_text(encoding="utf-8")
    assert family in NO_MAPS or recorded(model) == found


@torch.no_grad()
@pytest.mark.parametrize(("dtype", "most"), [(torch.float32, 1e-6), (torch.bfloat16, 2e-2)])
def test_an_mlstm_has_the_map_of_its_rule(dtype: torch.dtype, most: float) -> None:
    """xLSTM takes no attention mask, so padding is text to it; `token_mask` says which it is. A step has no map."""
    model = hybrid("xlstm").to(dtype)
    plain = model(linear.IDS).logits
    instrument(model)
    edited = "decoder.0.self"
    edits = {edited: [off(0), gate(1, 0.5), knock_out(2, query=30, key=20)]}
    with linear.Spy(model) as spy, record(values=True, token_mask=linear.REAL) as trace:
        assert torch.equal(model(linear.IDS).logits, plain), "recording changes no bit"
        maps, outputs = dict(spy.maps), dict(spy.outputs)
        with intervene(edits), record(values=True) as changed:
            model(linear.IDS)
        written = spy.outputs[edited]
    assert [call.rule for call in trace] == ["mLSTM"] * 2
    for call in trace:
        assert torch.equal(call.key_mask, linear.REAL)
        size = max(1.0, float(maps[call.site].abs().max()))
        assert float((call.weights() - maps[call.site]).abs().max()) < most * size
        output = outputs[call.site].float()
        assert float((head_outputs(call) - output).abs().max()) < most * float(output.abs().max())
        sums = call.weights().sum(dim=-1).abs()
        assert 0.1 < float((sums < 0.99).float().mean()) < 0.9, "both branches of the divisor"
        tile = call.weights(head=1, queries=slice(20, 68, 5), keys=slice(3, 40))
        torch.testing.assert_close(tile, call.weights()[:, 1, 20:68:5, 3:40])
    cut = trace[edited].weights()
    cut[0, 2, 30, 20] = cut[1, 2, 30, 20] = 0
    assert torch.equal(changed[edited].weights()[:, 2:], cut[:, 2:])
    torch.testing.assert_close(head_outputs(changed[edited]).to(dtype), written, atol=most * 10, rtol=most)
    assert not written[:, 0].any()
    with pytest.raises(ValueError, match="expected off, gate, mean"), intervene({edited: sharpen(0, 2)}):
        model(linear.IDS)
    with pytest.warns(UserWarning, match="a step from a state is not recorded"), record():
        model(linear.IDS[:, :1], cache_params=model(linear.IDS).cache_params)
