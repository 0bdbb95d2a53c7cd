"""Tiny random models whose layers have no softmax, or only some of them."""

from __future__ import annotations

from typing import Any

import torch
import transformers

_BASE = {
    "vocab_size": 400,
    "hidden_size": 32,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 48,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
_TYPES = ["linear_attention", "linear_attention", "full_attention", "linear_attention"]
_DELTA = {
    "head_dim": 8,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 4,
    "linear_key_head_dim": 8,
    "linear_value_head_dim": 8,
    "layer_types": _TYPES,
}
_MAMBA = {"mamba_n_heads": 8, "mamba_d_head": 8, "mamba_d_state": 16, "mamba_n_groups": 2, "mamba_chunk_size": 16}
_EXPERTS = {"num_experts": 2, "num_experts_per_tok": 1, "moe_intermediate_size": 16}

# Family: model class, the rule of its layers without a softmax, options of its config.
FAMILIES: dict[str, tuple[str, str, dict[str, Any]]] = {
    "qwen3_next": (
        "Qwen3NextForCausalLM",
        "gated delta rule",
        _BASE | _DELTA | _EXPERTS | {"shared_expert_intermediate_size": 16},
    ),
    "qwen3_5_text": ("Qwen3_5ForCausalLM", "gated delta rule", _BASE | _DELTA),
    "olmo_hybrid": ("OlmoHybridForCausalLM", "gated delta rule", _BASE | _DELTA | {"linear_num_key_heads": 4}),
    "minimax": (
        "MiniMaxForCausalLM",
        "lightning attention",
        _BASE | {"head_dim": 8, "block_size": 16, "num_local_experts": 2, "layer_types": _TYPES},
    ),
    "mamba2": (
        "Mamba2ForCausalLM",
        "state-space duality",
        {
            **{name: size for name, size in _BASE.items() if "attention" not in name and "key" not in name},
            "num_heads": 8,
            "head_dim": 8,
            "state_size": 16,
            "n_groups": 2,
            "chunk_size": 16,
        },
    ),
    "bamba": ("BambaForCausalLM", "state-space duality", _BASE | _MAMBA | {"attn_layer_indices": [2]}),
    "falcon_h1": ("FalconH1ForCausalLM", "state-space duality", _BASE | _MAMBA | {"mamba_d_ssm": 64}),
    "nemotron_h": (
        "NemotronHForCausalLM",
        "state-space duality",
        {
            **_BASE,
            "mamba_num_heads": 8,
            "mamba_head_dim": 8,
            "ssm_state_size": 16,
            "n_groups": 2,
            "chunk_size": 16,
            "layers_block_type": ["mamba", "attention", "mamba", "moe"],
        },
    ),
    "granitemoehybrid": (
        "GraniteMoeHybridForCausalLM",
        "state-space duality",
        _BASE
        | _MAMBA
        | {
            "layer_types": ["mamba", "mamba", "attention", "mamba"],
            "num_local_experts": 2,
            "shared_intermediate_size": 16,
        },
    ),
}


def hybrid(family: str) -> Any:
    """A model in memory with random weights, large enough that maps are far from 0."""
    kind, _, options = FAMILIES[family]
    with torch.random.fork_rng():
        torch.manual_seed(11)
        model = getattr(transformers, kind)(transformers.CONFIG_MAPPING[family](**options)).eval()
        for name, weights in model.named_parameters():
            if weights.dim() > 1 and "conv" not in name:
                torch.nn.init.normal_(weights, std=0.15)
    return model
