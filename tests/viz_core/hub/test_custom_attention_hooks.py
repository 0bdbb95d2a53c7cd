"""Layers with attention in code of their own: heard as they are, by whoever records, and by nobody else."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor, nn
from torch.overrides import _get_current_function_mode

from tests.viz_core.hub.tiny_models import CODER, SIZES
from viz_core.hub import instrument, restore
from viz_core.hub.custom_attention import add_hooks, remove_hooks
from viz_core.trace import AttentionCall, intervene, off, record
from viz_core.trace.sites import name_site

HEADS = {"n_embd": 32, "n_layer": 2, "n_head": 4}
DEBERTA = {**SIZES, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]}
FALCON = {**SIZES, "attn_implementation": "sdpa"}
XGLM = {"d_model": 32, "ffn_dim": 48, "num_layers": 2, "attention_heads": 4}
# Scores with distances, with products by distances, torch's own kernel, heads beside the batch, two stacks.
FAMILIES: dict[str, dict[str, Any]] = {
    "Bloom": {"hidden_size": 32, "n_layer": 2, "n_head": 4},
    "DebertaV2": DEBERTA,
    "Falcon": FALCON,
    "XGLM": XGLM,
    "FSMT": {**CODER, "src_vocab_size": 99, "tgt_vocab_size": 99},
}


def drawn(family: str, **options: Any) -> Any:
    config = getattr(transformers, f"{family}Config")(**{"vocab_size": 99, "pad_token_id": 0, **FAMILIES[family]})
    for name, value in options.items():
        setattr(config, name, value)
    with torch.random.fork_rng():
        torch.manual_seed(3)
        model = getattr(transformers, f"{family}Model")(config).eval()
        for weights in model.parameters():
            if weights.dim() > 1:
                nn.init.normal_(weights, std=0.15)
    return model


def inputs_of(model: Any) -> dict[str, Tensor]:
    real = torch.arange(8) < torch.tensor([8, 5])[:, None]
    inputs = {"input_ids": torch.randint(4, 99, (2, 8)).where(real, 0), "attention_mask": real.long()}
    return inputs | ({"decoder_input_ids": torch.randint(4, 99, (2, 6))} if model.config.is_encoder_decoder else {})


def own_maps(output: Any) -> list[Tensor]:
    names = ("attentions", "encoder_attentions", "decoder_attentions", "cross_attentions")
    return [weights for name in names for weights in output.get(name) or ()]


def hooks(model: Any) -> int:
    return sum(len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules())


@pytest.mark.parametrize("family", FAMILIES)
def test_maps_are_those_that_the_model_returns(family: str) -> None:
    model, inputs = drawn(family), inputs_of(drawn(family))
    before = hooks(model)
    with torch.no_grad():
        expected = own_maps(drawn(family, _attn_implementation="eager")(**inputs, output_attentions=True))
        plain = model(**inputs)[0]
        sites = instrument(model)
        with record(torch_calls=True) as trace:  # heard once, however many hear
            output = model(**inputs)[0]
        restore(model)
        with record() as after:
            model(**inputs)
    assert torch.equal(output, plain)
    assert set(trace.sites) == set(sites)
    for call, weights in zip(sorted(trace, key=place), expected, strict=True):
        assert weights.std() > 0.05, "maps that are all alike would prove nothing"
        rows = slice(None, 5)  # queries that are padding see what they like
        torch.testing.assert_close(call.weights(queries=rows), weights[:, :, rows], atol=1e-6, rtol=0)
    assert after.sites == ()
    assert hooks(model) == before


def place(call: AttentionCall) -> tuple[int, int]:
    """As a model returns its maps: stack by stack."""
    stack, _, kind = call.site.split(".")
    return ["encoder.self", "decoder.self", "decoder.cross"].index(f"{stack}.{kind}"), call.layer


def test_training_goes_on_and_weights_are_those_before_dropout() -> None:
    model = drawn("Bloom", attention_dropout=0.5, use_cache=False).train()
    model.gradient_checkpointing_enable()
    inputs = inputs_of(model)

    def step() -> list[Tensor]:
        torch.manual_seed(4)
        output = model(**inputs)[0]
        return [output, *torch.autograd.grad(output.square().sum(), list(model.parameters()))]

    plain = step()
    sites = instrument(model)
    with record() as trace:
        found = step()
    assert all(torch.equal(a, b) for a, b in zip(plain, found, strict=True))
    assert trace.sites == sites
    sums = trace[sites[0]].weights().sum(dim=-1)
    torch.testing.assert_close(sums, torch.ones_like(sums))


def test_weights_in_the_graph() -> None:
    model = drawn("Bloom").requires_grad_(False)
    instrument(model)
    with record(differentiable=True) as trace:
        output = model(**inputs_of(model))[0]
    first, last = torch.autograd.grad(output.square().sum(), [call.graph_weights for call in trace])
    assert first.abs().sum() > 0
    assert last.abs().sum() > 0
    model = drawn("Falcon")
    instrument(model)
    with record(differentiable=True) as trace:  # by torch's kernel
        output = model(**inputs_of(model))[0]
    assert all(grad.any() for grad in torch.autograd.grad(output.sum(), [call.graph_weights for call in trace]))


def test_a_copy_is_heard_and_restored_by_itself() -> None:
    model = drawn("Bloom")
    sites = instrument(model)
    other = copy.deepcopy(model)
    restore(model)
    with record() as trace:
        other(**inputs_of(other))
        model(**inputs_of(model))
    assert trace.sites == sites
    restore(other)
    assert hooks(other) == hooks(model) == 0


def test_nobody_edits_them() -> None:
    model = drawn("Bloom")
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
