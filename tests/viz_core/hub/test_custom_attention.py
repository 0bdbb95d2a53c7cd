"""Layers with code of their own, models that rely on their masks: the output stays theirs, and nothing is silent."""

import contextlib
from collections.abc import Callable
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
from viz_core.trace import intervene, load_trace, name_site, off, record, save_trace
from viz_core.view import view
from viz_core.view.grouping import group_calls
from viz_core.view.payload import _describe

WORDS = {"vocab_size": 99, "pad_token_id": 0, "eos_token_id": 2, "decoder_start_token_id": 0}
EXPERTS = {"num_experts": 2, "encoder_sparse_step": 2, "decoder_sparse_step": 2}
Make = Callable[[], Any]


def nllb() -> Any:
    return transformers.NllbMoeModel(transformers.NllbMoeConfig(**CODER, **WORDS, **EXPERTS))


def splinter() -> Any:
    return transformers.SplinterModel(transformers.SplinterConfig(**SIZES, vocab_size=99))


def pegasus_x() -> Any:
    return transformers.PegasusXModel(transformers.PegasusXConfig(**CODER, **WORDS, num_global_tokens=4, block_size=8))


def drawn(make: Make) -> Any:
    with torch.random.fork_rng():
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
        missing = "not recorded of PegasusXModel: layers 0 to 1 of encoder.layers: PegasusXGlobalLocalAttention"
        warned = pytest.warns(UserWarning, match=missing)
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


# What some models hand over besides queries, keys and values


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
    call = trace["attention.0"]
    assert torch.equal(call.chosen, mask.expand(1, 2, 3, 4))
    past = torch.ones(3, 4).tril(1).bool()
    skipped = call.not_chosen()
    assert skipped is not None
    assert torch.equal(skipped, (~mask & past).expand(1, 2, 3, 4))


def test_a_sink_for_each_query() -> None:
    """Inkling 2: eager attention adds a column of scores to the softmax and drops it again."""
    query, key = torch.randn(2, 2, 3, 8), torch.randn(2, 2, 3, 8)
    bias, sinks = torch.randn(2, 2, 3, 3), torch.randn(2, 2, 3, 1)
    with record() as trace:
        output, _ = attention_forward(
            nn.Identity(), query, key, key, torch.ones(1, 1, 3, 3).bool(), scaling=0.5, position_bias=bias, sinks=sinks
        )
    weights = torch.cat([query @ key.mT * 0.5 + bias, sinks], dim=-1).softmax(dim=-1)
    torch.testing.assert_close(output.transpose(1, 2), weights[..., :-1] @ key)
    torch.testing.assert_close(trace["attention.0"].weights(), weights.roll(1, dims=-1))


@pytest.mark.parametrize("additive", [False, True])
def test_a_mask_that_is_wider_than_the_keys_is_cut(additive: bool) -> None:
    """Falcon-H1 of transformers 4.57 adds a column for the next token."""
    X, mask = torch.randn(2, 2, 3, 8), torch.ones(2, 1, 3, 4).bool().tril()
    given = torch.zeros(2, 1, 3, 4).masked_fill(~mask, -torch.inf) if additive else mask
    with record() as trace:
        output, _ = attention_forward(nn.Identity(), X, X, X, given)
    torch.testing.assert_close(output.transpose(1, 2), F.scaled_dot_product_attention(X, X, X, is_causal=True))
    assert not trace["attention.0"].weights().triu(1).any()


def test_blocks_of_keys_are_refused() -> None:
    X = torch.randn(1, 1, 2, 4)
    with pytest.raises(ValueError, match="Identity: expected attention to all keys, got blocks chosen for each query"):
        attention_forward(nn.Identity(), X, X, X, None, block_indices=torch.zeros(1, 1, 2, 1))


def test_weights_in_the_graph() -> None:
    model = in_memory("bloom").requires_grad_(False)
    instrument(model)
    with record(differentiable=True) as trace:
        output = model(**inputs_of(model))[0]
    first, last = torch.autograd.grad(output.square().sum(), [call.graph_weights for call in trace])
    assert first.abs().sum() > 0
    assert last.abs().sum() > 0
    model = in_memory("falcon")
    instrument(model)
    with record(differentiable=True) as trace:  # by torch's kernel
        output = model(**inputs_of(model))[0]
    assert all(grad.any() for grad in torch.autograd.grad(output.sum(), [call.graph_weights for call in trace]))


def test_nobody_edits_them() -> None:
    model = in_memory("bloom")
    instrument(model)
    inputs = inputs_of(model)
    with (
        pytest.raises(ValueError, match=r"site 'decoder\.1\.self': expected scaled dot-product attention"),
        intervene({"decoder.1.self": off(0)}),
        record() as trace,
    ):
        model(**inputs)
    assert trace.sites == ("decoder.0.self",)
    with record() as trace:
        model(**inputs)
    assert trace.sites == ("decoder.0.self", "decoder.1.self")


SERIES = {"prediction_length": 10, "context_length": 30, "lags_sequence": [1, 2], "num_time_features": 1, "d_model": 32}
SERIES |= {f"{stack}_{name}": 2 for stack in ("encoder", "decoder") for name in ("layers", "attention_heads")}


def of_series(model: Any) -> dict[str, Tensor]:
    length = {"past": 32, "future": 10}
    found = {f"{when}_values": torch.randn(2, n) for when, n in length.items()}
    found |= {f"{when}_time_features": torch.randn(2, n, 1) for when, n in length.items()}
    return {**found, "past_observed_mask": torch.ones(2, 32)}


def test_informer_has_a_row_for_every_query_and_names_those_it_samples(tmp_path: Path) -> None:
    model = drawn(lambda: transformers.InformerModel(transformers.InformerConfig(**SERIES, sampling_factor=2)))
    inputs, read = of_series(model), dict[str, tuple[Tensor, Tensor]]()
    for stack in ("encoder", "decoder"):
        layer, got = getattr(model, stack).layers[0].self_attn, list[Tensor]()
        layer.v_proj.register_forward_hook(lambda *given, got=got: got.append(given[2]))
        layer.out_proj.register_forward_pre_hook(
            lambda _, given, got=got, stack=stack: read.update({stack: (got[-1], given[0])})
        )
    with torch.no_grad():
        torch.manual_seed(5)
        theirs = model(**inputs, output_attentions=True)
        instrument(model, verify=False)
        torch.manual_seed(5)
        with record() as trace:
            model(**inputs)
    for stack, returned in (("encoder", theirs.encoder_attentions), ("decoder", theirs.decoder_attentions)):
        call, (values, written) = trace[f"{stack}.0.self"], read[stack]
        heads = (call.weights() @ values.unflatten(-1, (2, -1)).transpose(1, 2)).transpose(1, 2).flatten(2)
        torch.testing.assert_close(heads, written, atol=1e-5, rtol=1e-5)
        rows, count = call.weights(), returned[0].shape[2]
        assert call.sampled is not None
        assert call.sampled.sum(dim=-1).unique().tolist() == [count]
        assert count < call.num_queries == call.num_keys
        sampled = rows[call.sampled].reshape(returned[0].shape)
        torch.testing.assert_close(sampled.sum(dim=2), returned[0].sum(dim=2))  # in another order
        assert call.signed == (stack == "decoder")
        assert call.rule == "softmax of sampled queries"
        described = _describe(group_calls([call])[0])["layers"]
        assert described[0]["rule"] == "rule_sampled"
    assert trace["decoder.0.cross"].sampled is None
    save_trace(trace, tmp_path / "series.trace")
    again = load_trace(tmp_path / "series.trace")["encoder.0.self"]
    assert torch.equal(again.sampled, trace["encoder.0.self"].sampled)
    assert again.text(0).sampled.shape == (1, 2, again.num_queries)


def test_what_autoformer_returns_is_no_map() -> None:
    model = drawn(lambda: transformers.AutoformerModel(transformers.AutoformerConfig(**SERIES)))
    with torch.no_grad():
        returned = model(**of_series(model), output_attentions=True).encoder_attentions
    with pytest.raises(ValueError, match=r"got AutoformerModel.*lags.*no whole maps"):
        instrument(model)
    assert {row.code for row in coverage(model)} == {"lags"}
    with pytest.raises(ValueError, match="expected weights from 0 on"):
        view(returned)


def siglip2() -> Any:
    sizes = {**SIZES, "num_hidden_layers": 1, "num_patches": 16, "patch_size": 4}
    return transformers.Siglip2VisionModel(transformers.Siglip2VisionConfig(**sizes))


@torch.no_grad()
@pytest.mark.parametrize(("dtype", "most"), [(torch.float32, 1e-6), (torch.bfloat16, 4e-3)])
def test_a_pooling_head_outside_the_lists_of_layers_has_a_map(dtype: torch.dtype, most: float) -> None:
    model = drawn(siglip2).to(dtype)
    real = torch.arange(16) < torch.tensor([16, 9])[:, None]
    inputs = {"pixel_values": torch.randn(2, 16, 48, dtype=dtype), "pixel_attention_mask": real.long()}
    inputs["spatial_shapes"] = torch.tensor([[4, 4], [3, 3]])
    plain = model(**inputs).pooler_output
    assert instrument(model) == ("encoder.0.self", "encoder.head.cross")
    assert [(each.layer, each.site) for each in coverage(model)] == [
        (0, "encoder.0.self"),
        (None, "encoder.head.cross"),
    ]
    seen: dict[str, Any] = {}
    handle = model.head.attention.register_forward_pre_hook(
        lambda _layer, args, given: (
            seen.update(zip(("query", "key", "value"), args, strict=False)) or seen.update(given)
        ),
        with_kwargs=True,
    )
    with record(values=True) as trace:
        assert torch.equal(model(**inputs).pooler_output, plain)
    handle.remove()
    expected = model.head.attention(**{**seen, "need_weights": True}, average_attn_weights=False)[1]
    call = trace["encoder.head.cross"]
    assert call.weights().shape == (2, 4, 1, 16)
    assert float((call.weights() - expected).abs().max()) < most
    assert torch.equal(call.key_mask, real)
    assert not call.weights()[1, :, :, 9:].any()
    restore(model)
    assert not hooks(model)


def test_the_last_cross_attention_of_sam_has_a_map() -> None:
    vision = {**PICTURE, "num_hidden_layers": 1, "mlp_dim": 48, "output_channels": 16, "num_pos_feats": 8}
    vision |= {"window_size": 0, "global_attn_indexes": [0]}
    prompt = {"hidden_size": 16, "image_size": 16, "patch_size": 4, "mask_input_channels": 4}
    decoder = {"hidden_size": 16, "mlp_dim": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    decoder["iou_head_hidden_dim"] = 16
    config = transformers.SamConfig(vision_config=vision, prompt_encoder_config=prompt, mask_decoder_config=decoder)
    model = drawn(lambda: transformers.SamModel(config))
    point = torch.tensor([[[[3.0, 4.0]]]])
    report = verify(model, pixel_values=torch.randn(1, 3, 16, 16), input_points=point)
    assert report.output_error == 0
    assert report.map_errors["encoder.final_attn_token_to_image.cross"] < 1e-6
    assert report.map_errors["encoder.0.cross_attn_image_to_token.cross"] < 1e-6
    assert max(report.value_errors.values()) < 1e-5


class Blocks(nn.Module):
    """Some tokens see all, the others their neighbours."""

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
    """Something happens in the midst of it."""

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
    assert _get_current_function_mode() is None


def test_an_error_leaves_nothing_behind() -> None:
    layer = Disturbed(lambda: 1 // 0)
    add_hooks(layer)
    with pytest.raises(ZeroDivisionError), record() as trace:
        layer(torch.randn(1, 2, 3, 3))
    assert trace.sites == ()
    assert _get_current_function_mode() is None
