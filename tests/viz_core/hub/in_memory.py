"""Models of transformers in memory, and what they give eagerly: for the tests of `instrument`."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor

from tests.viz_core.hub.test_parity import maps_of
from tests.viz_core.hub.tiny_models import random_model
from viz_core.trace import record

FAMILIES = ["gpt2", "bert", "t5", "llama", "gemma2", "vit", "marian", "dinov2", "bart"]
STACKS = {"gpt2": "decoder", "llama": "decoder", "gemma2": "decoder"}  # the others read, or have both stacks
NO_DROPOUT = dict.fromkeys(
    "resid_pdrop embd_pdrop attn_pdrop hidden_dropout_prob attention_probs_dropout_prob dropout dropout_rate "
    "attention_dropout activation_dropout drop_path_rate".split(),
    0.0,
)


def in_memory(family: str, **options: Any) -> Any:
    return random_model(family, **{**NO_DROPOUT, **options})


def inputs_of(model: Any) -> dict[str, Tensor]:
    """A batch with padding, or a batch of pictures."""
    draw = torch.Generator().manual_seed(8)
    if model.main_input_name == "pixel_values":
        return {"pixel_values": torch.randn(2, 3, 16, 16, generator=draw)}
    real = torch.arange(9) < torch.tensor([9, 5])[:, None]
    inputs = {"input_ids": torch.randint(4, 390, (2, 9), generator=draw).where(real, 0), "attention_mask": real.long()}
    if model.config.model_type == "bert":
        inputs["input_ids"] %= 200
    if model.config.is_encoder_decoder:
        inputs["decoder_input_ids"] = torch.randint(4, 390, (2, 7), generator=draw)
    return inputs


def eager_twin(model: Any) -> Any:
    """A copy of a model, weights and all, that gives whole maps."""
    twin = copy.deepcopy(model)
    twin.set_attn_implementation("eager")
    return twin


def output_of(result: Any) -> Tensor:
    return result.logits if "logits" in result else result.last_hidden_state


def assert_seen(model: Any, sites: tuple[str, ...], inputs: dict[str, Tensor]) -> None:
    """Every map is what the same weights give eagerly, and so is the output."""
    with record() as trace:
        result = model(**inputs)
    expected = eager_twin(model)(**inputs, output_attentions=True)
    maps = maps_of(expected, STACKS.get(model.config.model_type, "encoder"))
    assert set(trace.sites) == set(sites) == set(maps)
    real = inputs["attention_mask"].bool() if "attention_mask" in inputs else None
    for site, weights in maps.items():
        assert weights.std() > 0.01, "maps that are all alike would prove nothing"
        difference = (trace[site].weights() - weights.detach()).abs().amax(dim=(1, 3))
        # Queries that are padding see what they like.
        rows = real if real is not None and real.shape == difference.shape else torch.ones_like(difference).bool()
        assert float(difference[rows].max()) < 1e-6, site
    before, after = output_of(expected), output_of(result)
    rows = real if real is not None and real.shape == after.shape[:2] else torch.ones(after.shape[:2]).bool()
    torch.testing.assert_close(after[rows], before[rows], atol=1e-5, rtol=1e-5)


def implementations(model: Any) -> list[str | None]:
    configs = [module.config for module in model.modules() if hasattr(module, "config")]
    return [config._attn_implementation for config in configs]
