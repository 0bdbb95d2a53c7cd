"""Any family of transformers as a tiny random model, and inputs that its forward pass takes.

Sizes are recognised by the names of a config's attributes, in nested configs too; what a family needs beyond that is
in `OWN`. Nothing is downloaded.
"""

import inspect
import re
from typing import Any

import torch
import transformers
from torch import Tensor, nn

from tests.viz_core.hub.families import HYBRIDS

WIDTH, HEADS, VOCABULARY, TOKENS, MAX_PARAMETERS = 32, 4, 96, 12, 4_000_000
IMAGE, PATCH = 32, 8

# The first pattern that a name matches in full gives the size. None: the size depends on others.
_SIZES: tuple[tuple[str, int], ...] = (
    (r".*(?:vocab_size|vocab_size_per_layer_input|vocabulary_size)", VOCABULARY),
    (r"(?:num_key_value_heads|num_kv_heads|.*_key_value_heads|n_kv_heads|num_key_value_groups|.*_kv_heads)", 2),
    (r"linear_num_key_heads|linear_num_value_heads", 4),
    (r".*(?:num_attention_heads|attention_heads|num_heads|n_head|n_heads|num_head)", HEADS),
    (r"(?:.*q_lora_rank|.*kv_lora_rank|o_lora_rank|.*lora_rank)", 16),
    (r".*(?:head_dim|d_kv|kv_channels|head_size|qk_nope_head_dim|v_head_dim|head_width)", WIDTH // HEADS),
    (r"(?:moe|expert|shared_expert|shared)_?.*(?:intermediate_size|ffn_dim|_size)", 16),
    (
        r".*(?:intermediate_size|ffn_dim|d_ff|ffn_hidden_size|mlp_dim|n_inner|dim_feedforward|intermediate_dim|ff_dim)",
        48,
    ),
    (
        r".*(?:num_experts_per_tok|num_experts_per_token|experts_top_k|moe_topk|moe_k|top_k_experts|num_selected_experts)",
        2,
    ),
    (r".*(?:num_experts|num_local_experts|n_routed_experts|moe_num_experts)", 4),
    (r"n_group|topk_group|moe_num_shared_experts|n_shared_experts", 1),
    (r"first_k_dense_replace|num_dense_layers", 1),
    (r".*(?:num_hidden_layers|_layers|n_layer|num_layers|depth|n_layers|num_blocks|num_hidden_groups)", 2),
    (
        r".*(?:hidden_size|d_model|n_embd|embed_dim|hidden_dim|embedding_size|projection_dim|proj_dim|width|embedding_dim)",
        WIDTH,
    ),
    (r"rotary_dim", WIDTH // HEADS),
    (r"dim|.*(?:proj_size|output_dim|out_dim|hidden_channels|emb_dim|bottleneck_dim|d_cond)|lru_width", WIDTH),
    (r".*(?:max_position_embeddings|n_positions|max_.*positions|max_seq_len|max_sequence_length|n_ctx)", 128),
)
# These number what is listed elsewhere.
_UNCHANGED = ("num_feat_extract_layers", "num_conv_layers", "num_adapter_layers")

_MROPE = re.compile(r"qwen2(_5)?_vl|glm4v|glm46v|glm_ocr|glm_image|glmga|paddleocr")
_SERIES = {"prediction_length": 8, "context_length": 16, "lags_sequence": [1, 2], "num_time_features": 1}
# Options that a family needs beside its sizes.
OWN: dict[str, dict[str, Any]] = {
    **{family: HYBRIDS[family][2] for family in ("bamba", "granitemoehybrid", "mamba2", "nemotron_h", "xlstm")},
    **dict.fromkeys(("autoformer", "informer", "time_series_transformer"), _SERIES),
    "deepseek_v2": {"num_experts_per_tok": 2},
    "esm": {"vocab_size": 33, "pad_token_id": 1, "mask_token_id": 32},
    "gpt_neo": {"attention_types": [[["global", "local"], 1]]},
    "layoutlmv3": {"coordinate_size": 6, "shape_size": 4},
    "lilt": {"hidden_size": 24 * 2, "num_attention_heads": 4},
    "reformer": {"axial_pos_embds_dim": [16, 16], "axial_pos_shape": [4, 16], "attention_head_size": 8},
}


def shrunk(family: str) -> nn.Module:
    """Return a model of a family with random weights, in evaluation mode.

    Raises:
        ValueError: if it has more parameters than a test should run.
    """
    config = config_of(family)
    model_class = transformers.MODEL_MAPPING[type(config)]
    if isinstance(model_class, tuple):
        model_class = model_class[0]
    with torch.device("meta"):
        count = sum(each.numel() for each in model_class(config).parameters())
    if count > MAX_PARAMETERS:
        raise ValueError(f"{count / 1e6:.0f} million parameters are left")
    with torch.random.fork_rng():
        torch.manual_seed(11)
        model = model_class(config_of(family)).eval()
        for name, each in model.named_parameters():
            if each.dim() == 2 and each.is_floating_point() and "conv" not in name and "A_log" not in name:
                nn.init.normal_(each, std=0.15)
    return model.requires_grad_(False)


def config_of(family: str) -> Any:
    """Return the config of a shrunk model."""
    config_class = transformers.CONFIG_MAPPING[family]
    return config_class(**{**_options(config_class()), **OWN.get(family, {})})


def _options(config: Any) -> dict[str, Any]:
    found = dict[str, Any]()
    accepted = set(inspect.signature(type(config).__init__).parameters) | set(config.to_dict())
    heads = _first(config, "num_attention_heads", "n_head", "num_heads")
    for name, value in list(vars(config).items()):
        public = name.removeprefix("_")
        if isinstance(value, transformers.PreTrainedConfig):
            found[name] = {**_options(value), "model_type": value.model_type}
        elif name.startswith("_") or name not in accepted or isinstance(value, bool) or name in _UNCHANGED:
            continue
        elif value is None and name in ("head_dim", "num_key_value_heads"):
            found[name] = WIDTH // HEADS if name == "head_dim" else HEADS
        elif name == "rope_parameters" and ("mrope_section" in (value or {}) or _MROPE.match(config.model_type)):
            found[name] = {**(value or {}), "mrope_section": [2, 1, 1], "partial_rotary_factor": 1.0}
        elif isinstance(value, int):
            size = next((size for pattern, size in _SIZES if re.fullmatch(pattern, public)), None)
            if re.fullmatch(r".*(token_id|token_index|_id)", public):
                found[name] = _token(public, value)
            elif size is not None and value > 0:
                found[name] = min(value, size) if public.endswith(("layers", "layer")) else size
                if (size == 2 and "kv" in public) or "key_value" in public:
                    found[name] = 1 if value == 1 else HEADS if value == heads else 2
            elif "image_size" in public:
                found[name] = 2 * IMAGE if hasattr(config, "depths") else IMAGE
            elif public == "patch_size":
                found[name] = PATCH if value > 4 else value
            elif public in ("sliding_window", "window_size", "attention_window_size"):
                found[name] = 2 if hasattr(config, "depths") else 4
        elif isinstance(value, list | tuple) and value and all(type(each) is int for each in value):
            if re.fullmatch(r".*token_ids?", public):
                found[name] = [_token(public, each) for each in value]
            elif "image_size" in public:
                found[name] = type(value)(IMAGE for _ in value)
            elif re.fullmatch(r"depths?|layers|num_layers|num_blocks", public):
                found[name] = type(value)(min(each, 1 + (place == 1)) for place, each in enumerate(value))
            elif re.fullmatch(r".*conv_dim|.*(?:hidden_sizes|embed_dims?|dims?|channels)", public):
                smallest = min(value)
                found[name] = type(value)(max(8, 16 * each // smallest) for each in value)
    kinds = getattr(config, "layer_types", None) or getattr(config, "layers_block_type", None)
    stages = getattr(config, "num_heads", None)
    if isinstance(stages, list | tuple) and "embed_dim" in found and type(stages[0]) is int:
        found["embed_dim"] = 8 * stages[0]
    for name in ("num_hidden_layers", "n_layer", "num_layers"):
        if kinds and name in found:
            found[name] = next(n for n in range(2, len(kinds) + 1) if {*kinds[:n]} == {*kinds} or n >= 8)
    return found


def _token(name: str, value: int) -> int:
    """Return an id in the vocabulary: small ones stay, others are told apart by their names."""
    return value if value < 10 else VOCABULARY - 2 - sum(map(ord, name)) % 60


def _first(config: Any, *names: str) -> Any:
    return next((getattr(config, name) for name in names if isinstance(getattr(config, name, None), int)), None)


def inputs_of(model: nn.Module) -> list[dict[str, Tensor]]:
    """Return inputs to try in turn: the richest first."""
    config, taken = model.config, inspect.signature(model.forward).parameters
    draw = torch.Generator().manual_seed(8)
    real = torch.arange(TOKENS) < torch.tensor([TOKENS, TOKENS - 4])[:, None]
    words = {"input_ids": torch.randint(10, 33, (2, TOKENS), generator=draw)}
    if "attention_mask" in taken:
        words["attention_mask"] = real.long()
    other = {"decoder_input_ids": torch.randint(10, 33, (2, 7), generator=draw)} if "decoder_input_ids" in taken else {}
    size, channels = _image(config)
    picture = {"pixel_values": torch.randn(2, channels, *size, generator=draw)}
    mels = _deep(config, "num_mel_bins", "feature_size", "input_feat_per_channel", "num_mels", "n_mels") or 80
    features = torch.randn(2, int(mels), 64, generator=draw)
    sound = {"input_values": torch.randn(2, 3200, generator=draw)}
    found: list[dict[str, Tensor]] = []
    if "past_values" in taken:
        return [_series(config, taken, draw)]
    if "grid_thw" in taken:
        volume = 3 * (getattr(config, "temporal_patch_size", 1) or 1) * config.patch_size**2
        first = next(iter(taken))
        return [{first: torch.randn(16, volume, generator=draw), "grid_thw": torch.tensor([[1, 4, 4]])}]
    if "input_ids" in taken:
        if "pixel_values" in taken:
            found += [{**words, **picture}]
        found += [{**words, **other}]
    elif "pixel_values" in taken:
        found += [picture, {"pixel_values": picture["pixel_values"][:, None].expand(-1, 4, -1, -1, -1).contiguous()}]
    elif "pixel_values_videos" in taken:
        found += [{"pixel_values_videos": picture["pixel_values"][:, None].expand(-1, 4, -1, -1, -1).contiguous()}]
    elif "input_features" in taken:
        found += [{"input_features": features, **other}, {"input_features": features.mT.contiguous(), **other}]
        found += [{"input_features": torch.randn(2, int(mels), 2 * n, generator=draw), **other} for n in (64, 128)]
    elif "input_values" in taken:
        found += [
            sound | other,
            {"input_values": sound["input_values"][:, None]},
            {"input_values": features.mT.contiguous()},
        ]
    return found


def _series(config: Any, taken: Any, draw: torch.Generator) -> dict[str, Tensor]:
    if "future_values" not in taken or not hasattr(config, "lags_sequence"):
        length, channels = config.context_length, getattr(config, "num_input_channels", 1)
        return {"past_values": torch.randn(2, length, channels, generator=draw)}
    past, future = config.context_length + max(config.lags_sequence), config.prediction_length
    found = {f"{when}_values": torch.randn(2, n, generator=draw) for when, n in (("past", past), ("future", future))}
    for when, n in (("past", past), ("future", future)):
        found[f"{when}_time_features"] = torch.randn(2, n, config.num_time_features, generator=draw)
    return {**found, "past_observed_mask": torch.ones(2, past)}


def _image(config: Any) -> tuple[tuple[int, int], int]:
    size = _deep(config, "image_size", "img_size") or IMAGE
    size = (size, size) if isinstance(size, int) else (*size,)[:2]
    return size, int(_deep(config, "num_channels", "in_channels", "in_chans") or 3)


def _deep(config: Any, *names: str) -> Any:
    for each in (
        config,
        *(value for value in vars(config).values() if isinstance(value, transformers.PreTrainedConfig)),
    ):
        for name in names:
            if isinstance(getattr(each, name, None), int | list | tuple):
                return getattr(each, name)
    return None
