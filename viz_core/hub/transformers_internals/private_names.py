"""Every private name of transformers that the hub uses: settings of attention, model types, code of single models.

A test at the first import says which names are missing, and what does not work then.
"""

import importlib
import re
import warnings
from collections.abc import Callable, Collection, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor

from viz_core.runtime import private_names
from viz_core.runtime.private_names import PrivateName

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


def patch_positions(grid: Int[Tensor, "1 3"], merge: int) -> Int[Tensor, "patches 2"]:
    """Row and column of each patch in the order in which a Qwen-VL packs them."""
    from transformers.vision_utils import get_vision_position_ids

    positions: Tensor = get_vision_position_ids(grid, merge)
    return positions


def window_index(grid: Int[Tensor, "1 3"], merge: int, size: int, patch: int) -> tuple[Any, Any]:
    """The squares of patches in the order of their windows, and where each window ends (Qwen2.5-VL)."""
    from transformers.vision_utils import get_vision_window_index

    squares, ends = get_vision_window_index(grid, merge, size, patch)
    return squares, ends


def best_resolution(size: tuple[int, int], choices: Any) -> tuple[int, int]:
    """The size of a LLaVA-NeXT's tiles that suits a picture best, height and width."""
    from transformers.image_processing_utils import select_best_resolution

    height, width = select_best_resolution(size, choices)
    return int(height), int(width)


def internvl_tiles(processor: Any, height: int, width: int) -> tuple[int, int]:
    """Rows and columns of the tiles of an InternVL's picture."""
    from transformers.models.got_ocr2.image_processing_pil_got_ocr2 import get_optimal_tiled_canvas

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
_CONFIG = "transformers:PreTrainedConfig"
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
    from transformers import PreTrainedConfig

    getter = getattr(vars(PreTrainedConfig).get("_attn_implementation"), "fget", None)
    return getter is not None and _SET_BY_US.path.rsplit(".", 1)[-1] in getter.__code__.co_names


@cache
def warn_of_missing() -> None:
    """Warn of each missing name that every model needs, once."""
    for name in missing(("all",)):
        warnings.warn(f"transformers has no {name.path}: {name.without}", RuntimeWarning, stacklevel=2)
