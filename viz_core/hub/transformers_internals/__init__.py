"""Every private name of transformers that the hub uses: settings of attention, model types, code of single models,
and the rules of linear attention in it.

A test at the first import says which names are missing, and what does not work then.
"""

import importlib
import importlib.metadata
import inspect
import re
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from viz_core.hub.store import HubError
from viz_core.runtime import packages as private_names
from viz_core.runtime.packages import PrivateName
from viz_core.trace.linear_rule import LinearRule

CALLS_INTERFACE = re.compile("ALL_ATTENTION_FUNCTIONS")
"""Found in the code of layers that hand their attention to transformers' interface."""


def mask_functions() -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The functions that make masks for fused and for eager attention."""
    from transformers.masking_utils import eager_mask, sdpa_mask

    return sdpa_mask, eager_mask


def has_implementation(config: Any) -> bool:
    """Whether a config chooses an implementation of attention."""
    return hasattr(config, "_attn_implementation")


def implementation(config: Any) -> str | None:
    """The implementation of attention that a config chooses."""
    chosen: str | None = config._attn_implementation
    return chosen


def set_implementation(config: Any, name: str | None) -> None:
    """Choose an implementation for this config alone: its public setter changes nested configs as well."""
    config._attn_implementation_internal = name


def nested_configs(config: Any) -> Iterator[Any]:
    """The configs within a config."""
    return (nested for name in config.sub_configs if (nested := getattr(config, name, None)) is not None)


def supports_fused(model: Any) -> bool:
    """Whether a model declares support for torch's fused attention."""
    return bool(model._supports_sdpa)


def vocabulary_size(network: Any) -> int:
    """Return how many tokens a model that reads has embeddings of."""
    embeddings = getattr(network, "get_input_embeddings", None)  # CLIP's text model lacks it before transformers 5
    table = network.embeddings.token_embedding if embeddings is None else embeddings()
    return int(table.num_embeddings)


Task = Literal["base", "causal-lm", "masked-lm", "seq2seq-lm", "text-classification", "image-classification"]

TABLES: dict[Task, str] = {
    "base": "MODEL_MAPPING_NAMES",
    "causal-lm": "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES",
    "masked-lm": "MODEL_FOR_MASKED_LM_MAPPING_NAMES",
    "seq2seq-lm": "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES",
    "text-classification": "MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES",
    "image-classification": "MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES",
}
"""Where `transformers.models.auto.modeling_auto` has them."""


def has_model_for(task: Task, model_type: str) -> bool:
    """Whether transformers has a model of this type for a task."""
    from transformers.models.auto import modeling_auto

    return model_type in getattr(modeling_auto, TABLES[task])


def alibi_bias(config: Any) -> Float[Tensor, "heads keys"] | None:
    """ALiBi's bias of the first two keys as a model's own code makes it; None for models without.

    The three families that have it name it, and the number of heads, each in its own way.
    """
    kind = config.model_type
    if kind not in ("bloom", "mpt", "falcon") or (kind == "falcon" and not config.alibi):
        return None
    code = importlib.import_module(f"transformers.models.{kind}.modeling_{kind}")
    if kind == "mpt":
        bias = code.build_mpt_alibi_tensor(config.n_heads, 2, alibi_bias_max=config.attn_config.alibi_bias_max)
        return bias.reshape(config.n_heads, -1)
    bias = code.build_alibi_tensor(torch.ones(1, 2), config.num_attention_heads, torch.float32)
    return bias.reshape(config.num_attention_heads, -1)


def _found(path: str) -> Any:
    """What a private name stands for; HubError if the installed transformers lacks it."""
    if not private_names.exists(path):
        raise HubError(
            "This needs {name}, which transformers {version} does not have. Install a newer one.",
            name=path,
            version=importlib.metadata.version("transformers"),
        )
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)


def require_picture_code(kind: str) -> None:
    """Raise HubError if the installed transformers lacks what pictures of this family need."""
    if kind == "internvl":
        _found(f"{_TILES}:get_optimal_tiled_canvas")
    elif "qwen" in kind:
        _found("transformers.vision_utils:get_vision_position_ids")


def patch_positions(grid: Int[Tensor, "1 3"], merge: int) -> Int[Tensor, "patches 2"]:
    """Row and column of each patch in the order in which a Qwen-VL packs them."""
    positions: Tensor = _found("transformers.vision_utils:get_vision_position_ids")(grid, merge)
    return positions


def window_index(grid: Int[Tensor, "1 3"], merge: int, size: int, patch: int) -> tuple[Any, Any]:
    """The squares of patches in the order of their windows, and where each window ends (Qwen2.5-VL)."""
    squares, ends = _found("transformers.vision_utils:get_vision_window_index")(grid, merge, size, patch)
    return squares, ends


def best_resolution(size: tuple[int, int], choices: Any) -> tuple[int, int]:
    """The size of a LLaVA-NeXT's tiles that suits a picture best, height and width."""
    from transformers.image_processing_utils import select_best_resolution

    height, width = select_best_resolution(size, choices)
    return int(height), int(width)


def internvl_tiles(processor: Any, height: int, width: int) -> tuple[int, int]:
    """Rows and columns of the tiles of an InternVL's picture."""
    get_optimal_tiled_canvas = _found(f"{_TILES}:get_optimal_tiled_canvas")
    side = (processor.size["height"], processor.size["width"])
    columns, rows = get_optimal_tiled_canvas((height, width), side, processor.min_patches, processor.max_patches)
    return int(rows), int(columns)


def feature_extractor_config(path: Path) -> dict[str, Any]:
    """The content of preprocessor_config.json."""
    from transformers import WhisperFeatureExtractor

    config, _ = WhisperFeatureExtractor.get_feature_extractor_dict(path, local_files_only=True)
    return dict(config)


_AUTO = "transformers.models.auto.modeling_auto"
_TILES = "transformers.models.got_ocr2.image_processing_pil_got_ocr2"
_CONFIG = "transformers:PretrainedConfig"
_NO_MODEL = "no model of the hub is recognised"
_NO_INSTRUMENT = "instrument() and restore() fail"
_NO_MAPS = "no attention of a model of the hub is recorded"
_NO_QWEN = "pictures in a Qwen-VL have no maps of the vision tower"

PRIVATE_NAMES = (
    PrivateName("transformers.masking_utils:sdpa_mask", "all", _NO_MAPS),
    PrivateName("transformers.masking_utils:eager_mask", "all", _NO_MAPS),
    PrivateName("transformers.modeling_utils:ALL_ATTENTION_FUNCTIONS", "all", _NO_MAPS),
    PrivateName("transformers:PreTrainedModel._supports_sdpa", "all", _NO_MAPS),
    PrivateName(f"{_CONFIG}._attn_implementation", "all", _NO_INSTRUMENT),
    PrivateName(f"{_CONFIG}.sub_configs", "all", _NO_INSTRUMENT),
    *(PrivateName(f"{_AUTO}:{table}", "all", _NO_MODEL) for table in TABLES.values()),
    PrivateName("transformers.models.bloom.modeling_bloom:build_alibi_tensor", "family", "BLOOM does not load"),
    PrivateName("transformers.models.falcon.modeling_falcon:build_alibi_tensor", "family", "Falcon does not load"),
    PrivateName("transformers.models.mpt.modeling_mpt:build_mpt_alibi_tensor", "family", "MPT does not load"),
    PrivateName("transformers.vision_utils:get_vision_position_ids", "family", _NO_QWEN),
    PrivateName("transformers.vision_utils:get_vision_window_index", "family", _NO_QWEN),
    PrivateName("transformers.image_processing_utils:select_best_resolution", "family", "LLaVA-NeXT takes no picture"),
    PrivateName(f"{_TILES}:get_optimal_tiled_canvas", "family", "InternVL takes no picture"),
    PrivateName(
        "transformers:WhisperFeatureExtractor.get_feature_extractor_dict", "family", "speech models do not load"
    ),
)
"""Every name that this folder uses and that transformers does not document. To look for those of
"family" imports the code of four families of models."""

_SET_BY_US = PrivateName(f"{_CONFIG}._attn_implementation_internal", "all", _NO_INSTRUMENT)


def missing(features: Collection[str] = ("all", "family")) -> list[PrivateName]:
    """The names that the installed transformers lacks, of those that all models need or single families."""
    lacking = private_names.missing(name for name in PRIVATE_NAMES if name.feature in features)
    if _SET_BY_US.feature in features and not _reads_what_we_set():
        lacking.append(_SET_BY_US)
    return lacking


def _reads_what_we_set() -> bool:
    """Whether the implementation of attention that a config reports is the attribute that we set."""
    from transformers import PretrainedConfig

    getter = getattr(vars(PretrainedConfig).get("_attn_implementation"), "fget", None)
    return getter is not None and _SET_BY_US.path.rsplit(".", 1)[-1] in getter.__code__.co_names


@cache
def warn_of_missing() -> None:
    """Warn of each missing name that every model needs, once."""
    for name in missing(("all",)):
        warnings.warn(f"transformers has no {name.path}: {name.without}", RuntimeWarning, stacklevel=2)


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
    return bool(named & {*rules_of(type(layer))}) or is_lightning(layer) or hasattr(layer, "mlstm_backend")


def is_lightning(layer: nn.Module) -> bool:
    """Whether it is MiniMax's lightning attention, which is not a function of its own."""
    return all(hasattr(layer, name) for name in ("slope_rate", "qkv_proj", "norm", "act_fn"))


def read_lightning(layer: Any, projected: Tensor, given: Mapping[str, Any]) -> Read:
    """Read MiniMax's lightning attention (Qin 2024), a constant decay for each head, from what `qkv_proj` gave."""
    mask_states, tokens = rules_of(type(layer)).get("apply_mask_to_padding_states"), given.get("attention_mask")
    states = layer.act_fn(projected)
    states = states if mask_states is None else mask_states(states, tokens)
    batch, n, _ = states.shape
    states = states.reshape(batch, n, layer.num_attention_heads, -1).transpose(1, 2)
    queries, keys, values = states.split(layer.head_dim, dim=-1)
    if mask_states is None and tokens is not None:  # transformers 4 masks values, which gives the same as masked keys
        keys = keys * tokens[:, None, -n:, None].bool()
    log_decay = -layer.slope_rate.reshape(1, -1, 1).expand(-1, -1, n)
    cache = given.get("past_key_values")
    state = None if cache is None else cache.get_linear_cache(layer.layer_idx)
    return Read(_rule("lightning attention", queries, keys, log_decay), values, state)


def read_mlstm(backend: Any, given: Mapping[str, Any]) -> Read:
    """Read the mLSTM of xLSTM: a state that decays by a forget gate, and whose input gate is exponential."""
    queries, strength = given["query"], given["igate"].float().exp()
    scale, log_decay = queries.shape[-1] ** -0.5, F.logsigmoid(given["fgate"].float())
    rule = _rule("mLSTM", queries, given["key"], log_decay, scale, strength=strength, eps=backend.config.eps)
    return Read(rule, given["value"], given.get("c_initial"))


def _read_delta(given: Mapping[str, Any]) -> Read:
    """Read the gated delta rule of Qwen3-Next, Qwen3.5 and OLMo-Hybrid, or of Kimi Linear: a decay for each channel."""
    queries, keys, values, log_decay, strength = (
        given[name].transpose(1, 2) for name in ("query", "key", "value", "g", "beta")
    )
    options = {"erases": True, "normalised": given["use_qk_l2norm_in_kernel"], "strength": strength}
    name = "gated delta rule" if log_decay.dim() == 3 else "Kimi delta rule"
    rule = _rule(name, queries, keys, log_decay, scale=keys.shape[-1] ** -0.5, **options)
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
    "chunk_kimi_delta_attention": _read_delta,
    "recurrent_kimi_delta_attention": _read_delta,
    "mamba2_chunk_scan": _read_duality,
}
"""Functions that run a rule over a text, and what reads their arguments."""

STEPS = ("mamba2_selective_state_update",)
"""Functions that run one step from a state."""

FUSED = ("mamba2_split_conv1d_scan_combined",)
"""Shortcuts through a whole layer, which return None where there is none: the layer then runs its rule."""
