"""Layers with code of their own, models that rely on their masks: the output stays theirs, and nothing is silent."""

import contextlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
import transformers
from torch import Tensor, nn
from torch.overrides import _get_current_function_mode

from tests.viz_core.hub.families import CODER, PICTURE, SIZES, eager_twin, hooks, in_memory, inputs_of, maps_of
from viz_core.hub import coverage, instrument, restore, verify
from viz_core.hub.attention import attention_forward
from viz_core.hub.custom_attention import add_hooks, remove_hooks
from viz_core.trace import load_trace, name_site, record, save_trace
from viz_core.view import view
from viz_core.view.grouping import group_calls
from viz_core.view.payload import _describe

WORDS = {"vocab_size": 99, "pad_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 0}
EXPERTS = {"num_experts": 2, "encoder_sparse_step": 2, "decoder_sparse_step": 2}
Make = Callable[[], Any]
nllb = partial(transformers.NllbMoeModel, transformers.NllbMoeConfig(**CODER, **WORDS, **EXPERTS))
splinter = partial(transformers.SplinterModel, transformers.SplinterConfig(**SIZES, vocab_size=99))
_GLOBAL = {"num_global_tokens": 4, "block_size": 8}
pegasus_x = partial(transformers.PegasusXModel, transformers.PegasusXConfig(**CODER, **WORDS, **_GLOBAL))


def drawn(make: Make) -> Any:
    torch.manual_seed(3)
    model = make().eval()
    for weights in model.parameters():
        if weights.dim() > 1:
            nn.init.normal_(weights, std=0.15)
    return model


@pytest.mark.parametrize("padded", [False, True])
@pytest.mark.parametrize(("make", "hidden"), [(nllb, 0), (splinter, 0), (pegasus_x, 2)])
def test_masks_are_those_that_the_model_relies_on(make: Make, hidden: int, padded: bool) -> None:
    """Written for eager attention alone: no mask does not mean causal here, and numbers are added to scores."""
    model = drawn(make)
    real = torch.arange(8) < torch.tensor([8, 5])[:, None] if padded else torch.ones(2, 8, dtype=torch.bool)
    inputs = {"input_ids": torch.randint(4, 99, (2, 8)).where(real, 0)}
    if padded:
        inputs["attention_mask"] = real.long()
    if model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = torch.randint(4, 99, (2, 6))
    with torch.no_grad():
        expected = eager_twin(model)(**inputs, output_attentions=True)
        warned = pytest.warns(UserWarning, match="not recorded of PegasusXModel: layers 0 to 1 of encoder.layers")
        with warned if hidden else contextlib.nullcontext():
            named = instrument(model)
        with record() as trace:
            output = model(**inputs).last_hidden_state
        restore(model)
        plain = model(**inputs).last_hidden_state
    rows = real if output.shape[:2] == real.shape else torch.ones(output.shape[:2], dtype=torch.bool)
    torch.testing.assert_close(output[rows], expected.last_hidden_state[rows], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(plain, expected.last_hidden_state, atol=1e-5, rtol=1e-5)
    maps = maps_of(expected, "encoder")
    assert set(named) == set(trace.sites)
    assert len(maps) - len(named) == hidden
    for site in named:
        difference = (trace[site].weights() - maps[site]).abs().amax(dim=(1, 3))
        seen = real if difference.shape == real.shape else torch.ones_like(difference, dtype=torch.bool)
        assert float(difference[seen].max()) < 1e-6, site


def test_keys_that_each_query_chose() -> None:
    """DeepSeek V3.2's indexer: two of four keys for each of three queries."""
    query, key = torch.randn(1, 2, 3, 8), torch.randn(1, 2, 4, 8)
    indices = torch.tensor([[[0, 2], [1, 2], [3, 0]]])
    mask = torch.tensor([[1, 0, 1, 0], [0, 1, 1, 0], [1, 0, 0, 1]]).bool()
    with record() as trace:
        output, _ = attention_forward(nn.Identity(), query, key, key, mask.new_ones(1, 1, 3, 4), indices=indices)
    expected = F.scaled_dot_product_attention(query, key, key, attn_mask=mask)
    torch.testing.assert_close(output.transpose(1, 2), expected)
    assert torch.equal(trace["attention.0"].weights()[0, 0] > 0, mask)
    assert torch.equal(trace["attention.0"].chosen, mask.expand(1, 2, 3, 4))
    skipped = trace["attention.0"].not_chosen()
    assert skipped is not None
    assert torch.equal(skipped, (~mask & torch.ones(3, 4).tril(1).bool()).expand(1, 2, 3, 4))


def test_blocks_of_keys_are_refused() -> None:
    X = torch.randn(1, 1, 2, 4)
    with pytest.raises(ValueError, match="Identity: expected attention to all keys, got blocks chosen for each query"):
        attention_forward(nn.Identity(), X, X, X, None, block_indices=torch.zeros(1, 1, 2, 1))


@pytest.mark.parametrize("family", ["bloom", "falcon"])  # with code of its own, and by torch's kernel
def test_weights_in_the_graph(family: str) -> None:
    model = in_memory(family)
    instrument(model)
    with record(differentiable=True) as trace:
        output = model(**inputs_of(model))[0]
    grads = torch.autograd.grad(output.square().sum(), [call.graph_weights for call in trace])
    assert all(grad.any() for grad in grads)


SERIES = {"prediction_length": 10, "context_length": 30, "lags_sequence": [1, 2], "num_time_features": 1, "d_model": 32}
SERIES |= {f"{stack}_{name}": 2 for stack in ("encoder", "decoder") for name in ("layers", "attention_heads")}


def of_series(model: Any) -> dict[str, Tensor]:
    found = {f"{when}_values": torch.randn(2, n) for when, n in (("past", 32), ("future", 10))}
    found |= {f"{when}_time_features": torch.randn(2, n, 1) for when, n in (("past", 32), ("future", 10))}
    return {**found, "past_observed_mask": torch.ones(2, 32)}


def test_informer_has_a_row_for_every_query_and_names_those_it_samples(tmp_path: Path) -> None:
    """Values times weights are compared with what heads write in the register of families."""
    model = drawn(lambda: transformers.InformerModel(transformers.InformerConfig(**SERIES, sampling_factor=2)))
    inputs = of_series(model)
    torch.manual_seed(5)
    with torch.no_grad():
        returned = model(**inputs, output_attentions=True).encoder_attentions[0]
    instrument(model, verify=False)
    torch.manual_seed(5)
    with torch.no_grad(), record() as trace:
        model(**inputs)
    save_trace(trace, tmp_path / "series.trace")
    for call in (trace["encoder.0.self"], load_trace(tmp_path / "series.trace")["encoder.0.self"]):
        assert call.sampled is not None
        assert returned.shape[2] < call.num_queries == call.num_keys
        sampled = call.weights()[call.sampled].reshape(returned.shape)
        torch.testing.assert_close(sampled.sum(dim=2), returned.sum(dim=2))  # in another order
        assert (call.rule, call.text(0).sampled.shape) == ("softmax of sampled queries", (1, 2, call.num_queries))
    assert _describe(group_calls(trace)[0])["layers"][0]["rule"] == "rule_sampled"
    assert trace["decoder.0.cross"].sampled is None


def test_what_autoformer_returns_is_no_map() -> None:
    model = drawn(lambda: transformers.AutoformerModel(transformers.AutoformerConfig(**SERIES)))
    with torch.no_grad():
        returned = model(**of_series(model), output_attentions=True).encoder_attentions
    with pytest.raises(ValueError, match=r"got AutoformerModel.*lags.*no whole maps"):
        instrument(model)
    with pytest.raises(ValueError, match="expected weights from 0 on"):
        view(returned)


@torch.no_grad()
@pytest.mark.parametrize(("dtype", "most"), [(torch.float32, 1e-6), (torch.bfloat16, 4e-3)])
def test_a_pooling_head_outside_the_lists_of_layers_has_a_map(dtype: torch.dtype, most: float) -> None:
    config = transformers.Siglip2VisionConfig(**{**SIZES, "num_hidden_layers": 1, "num_patches": 16, "patch_size": 4})
    model = drawn(lambda: transformers.Siglip2VisionModel(config)).to(dtype)
    real = torch.arange(16) < torch.tensor([16, 9])[:, None]
    inputs = {"pixel_values": torch.randn(2, 16, 48, dtype=dtype), "pixel_attention_mask": real.long()}
    inputs["spatial_shapes"] = torch.tensor([[4, 4], [3, 3]])
    plain = model(**inputs).pooler_output
    assert instrument(model) == tuple(row.site for row in coverage(model)) == ("encoder.0.self", "encoder.head.cross")
    seen = list[Any]()
    model.head.attention.register_forward_pre_hook(lambda *given: seen.append(given[1:]), with_kwargs=True)
    with record(values=True) as trace:
        assert torch.equal(model(**inputs).pooler_output, plain)
    (args, given), weights = seen[0], trace["encoder.head.cross"].weights()
    expected = model.head.attention(*args, **{**given, "need_weights": True}, average_attn_weights=False)[1]
    assert float((weights - expected).abs().max()) < most
    assert torch.equal(trace["encoder.head.cross"].key_mask, real)
    assert not weights[1, :, :, 9:].any()


def test_the_last_cross_attention_of_sam_has_a_map() -> None:
    vision = {**PICTURE, "num_hidden_layers": 1, "mlp_dim": 48, "output_channels": 16, "num_pos_feats": 8}
    vision |= {"window_size": 0, "global_attn_indexes": [0]}
    prompt = {"hidden_size": 16, "image_size": 16, "patch_size": 4, "mask_input_channels": 4}
    decoder = {"hidden_size": 16, "mlp_dim": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    decoder["iou_head_hidden_dim"] = 16
    config = transformers.SamConfig(vision_config=vision, prompt_encoder_config=prompt, mask_decoder_config=decoder)
    model, point = drawn(lambda: transformers.SamModel(config)), torch.tensor([[[[3.0, 4.0]]]])
    report = verify(model, pixel_values=torch.randn(1, 3, 16, 16), input_points=point)
    assert report.output_error == 0
    assert report.map_errors["encoder.final_attn_token_to_image.cross"] < 1e-6
    assert report.map_errors["encoder.0.cross_attn_image_to_token.cross"] < 1e-6
    assert max(report.value_errors.values()) < 1e-5


class Blocks(nn.Module):
    def forward(self, scores: Tensor) -> Tensor:
        return scores[..., :2, :].softmax(dim=-1).sum() + scores[..., 2:, :4].softmax(dim=-1).sum()


def test_parts_of_a_map_are_none() -> None:
    layer = Blocks()
    name_site(layer, "encoder.0.self")
    add_hooks(layer)
    with (
        pytest.warns(UserWarning, match=r"encoder\.0\.self: expected Blocks to weigh all keys at once"),
        record() as trace,
    ):
        layer(torch.randn(1, 2, 8, 8))
    assert trace.sites == ()


class Disturbed(nn.Module):
    def __init__(self, happens: Callable[[], object]) -> None:
        super().__init__()
        self.happens = happens

    def forward(self, scores: Tensor) -> Tensor:
        weights = scores.softmax(dim=-1)
        self.happens()
        return weights


def test_restored_by_another_thread_while_it_runs() -> None:
    layer, scores = Disturbed(lambda: remove_hooks(layer, handles)), torch.randn(1, 2, 3, 3)
    name_site(layer, "encoder.0.self")
    handles = add_hooks(layer)
    with record() as trace:
        layer(scores)
        layer(scores)
    assert trace.sites == ("encoder.0.self",), "what it was in is recorded, and nothing after it"
    assert hooks(layer) == 0
    failing = Disturbed(lambda: 1 // 0)
    add_hooks(failing)
    with pytest.raises(ZeroDivisionError), record():
        failing(scores)
    assert _get_current_function_mode() is None
