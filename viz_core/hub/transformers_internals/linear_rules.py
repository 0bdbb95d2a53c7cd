"""Rules of linear attention in the code of transformers: which function of a module runs each, and what it is given."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from viz_core.trace.linear_rule import LinearRule


class Read(NamedTuple):
    """What a rule was given: its source, the values (batch, heads, n, v), and the state that it starts from."""

    source: LinearRule
    values: Tensor
    state: Tensor | None


def rules_of(layer: type[nn.Module]) -> dict[str, Any]:
    """The globals of the module whose code a class of layers runs."""
    globals_of: dict[str, Any] = inspect.unwrap(layer.forward).__globals__
    return globals_of


def has_rule(layer: nn.Module) -> bool:
    """Whether the code of a layer calls a rule that is known here."""
    forward = inspect.unwrap(type(layer).forward)
    named = {*RULES} & {*getattr(forward, "__code__", has_rule.__code__).co_names}
    return bool(named & {*rules_of(type(layer))}) or is_lightning(layer)


def is_lightning(layer: nn.Module) -> bool:
    """Whether it is MiniMax's lightning attention, which is not a function of its own."""
    return all(hasattr(layer, name) for name in ("slope_rate", "qkv_proj", "norm", "act_fn"))


def read_lightning(layer: Any, projected: Tensor, given: Mapping[str, Any]) -> Read:
    """Read MiniMax's lightning attention (Qin 2024), a constant decay for each head, from what `qkv_proj` gave."""
    masked = rules_of(type(layer))["apply_mask_to_padding_states"]
    states = masked(layer.act_fn(projected), given.get("attention_mask"))
    batch, n, _ = states.shape
    states = states.reshape(batch, n, layer.num_attention_heads, -1).transpose(1, 2)
    queries, keys, values = states.split(layer.head_dim, dim=-1)
    log_decay = -layer.slope_rate.reshape(1, -1, 1).expand(-1, -1, n)
    cache = given.get("past_key_values")
    state = None if cache is None else cache.get_linear_cache(layer.layer_idx)
    return Read(_rule("lightning attention", queries, keys, log_decay), values, state)


def _read_delta(given: Mapping[str, Any]) -> Read:
    """Read the gated delta rule of Qwen3-Next, Qwen3.5 and OLMo-Hybrid."""
    queries, keys, values, log_decay, strength = (
        given[name].transpose(1, 2) for name in ("query", "key", "value", "g", "beta")
    )
    options = {"erases": True, "normalised": given["use_qk_l2norm_in_kernel"], "strength": strength}
    rule = _rule("gated delta rule", queries, keys, log_decay, scale=keys.shape[-1] ** -0.5, **options)
    return Read(rule, values, given["initial_state"])


def _read_duality(given: Mapping[str, Any]) -> Read:
    """Read the state-space duality of Mamba-2, Bamba, Nemotron-H, Falcon-H1, Granite 4 and Zamba2."""
    step = given["dt"] if given["dt_bias"] is None else given["dt"] + given["dt_bias"].to(given["dt"].dtype)
    step = torch.clamp(F.softplus(step) if given["dt_softplus"] else step, *given["dt_limit"]).transpose(1, 2)
    queries, keys, values = (given[name].transpose(1, 2) for name in ("C", "B", "hidden_states"))
    log_decay = given["A"].float()[:, None] * step.float()
    rule = _rule("state-space duality", queries, keys, log_decay, strength=step, skip=given["D"])
    return Read(rule, values, given["initial_states"])


def _rule(
    name: str, queries: Tensor, keys: Tensor, log_decay: Tensor, scale: float = 1.0, **options: Any
) -> LinearRule:
    return LinearRule(queries, keys, None, None, True, scale, rule=name, log_decay=log_decay, **options)


RULES: dict[str, Callable[[Mapping[str, Any]], Read]] = {
    "torch_chunk_gated_delta_rule": _read_delta,
    "torch_recurrent_gated_delta_rule": _read_delta,
    "mamba2_chunk_scan": _read_duality,
}
"""Functions that run a rule over a text, and what reads their arguments."""

STEPS = ("mamba2_selective_state_update",)
"""Functions that run one step from a state."""

FUSED = ("mamba2_split_conv1d_scan_combined",)
"""Shortcuts through a whole layer, which return None where there is none: the layer then runs its rule."""
