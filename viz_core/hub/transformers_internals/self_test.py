"""A test at the first import: which private names of transformers are missing, and what does not work then."""

import warnings
from collections.abc import Collection
from functools import cache

from viz_core.hub.transformers_internals.model_types import TABLES
from viz_core.runtime import private_names
from viz_core.runtime.private_names import PrivateName

_AUTO = "transformers.models.auto.modeling_auto"
_TILES = "transformers.models.got_ocr2.image_processing_pil_got_ocr2"
_CONFIG = "transformers:PreTrainedConfig"
_NO_MODEL = "no model of the hub is recognised"
_NO_INSTRUMENT = "instrument() and restore() fail"
_NO_MAPS = "no attention of a model of the hub is recorded"
_NO_QWEN = "pictures in a Qwen-VL have no maps of the vision tower"

PRIVATE_NAMES = (
    PrivateName("transformers.masking_utils:sdpa_mask", "attention_settings", _NO_MAPS),
    PrivateName("transformers.masking_utils:eager_mask", "attention_settings", _NO_MAPS),
    PrivateName("transformers.modeling_utils:ALL_ATTENTION_FUNCTIONS", "attention_settings", _NO_MAPS),
    PrivateName("transformers:PreTrainedModel._supports_sdpa", "attention_settings", _NO_MAPS),
    PrivateName(f"{_CONFIG}._attn_implementation", "attention_settings", _NO_INSTRUMENT),
    PrivateName(f"{_CONFIG}.sub_configs", "attention_settings", _NO_INSTRUMENT),
    *(PrivateName(f"{_AUTO}:{table}", "model_types", _NO_MODEL) for table in TABLES.values()),
    PrivateName("transformers.models.bloom.modeling_bloom:build_alibi_tensor", "model_code", "BLOOM does not load"),
    PrivateName("transformers.models.falcon.modeling_falcon:build_alibi_tensor", "model_code", "Falcon does not load"),
    PrivateName("transformers.models.mpt.modeling_mpt:build_mpt_alibi_tensor", "model_code", "MPT does not load"),
    PrivateName("transformers.vision_utils:get_vision_position_ids", "model_code", _NO_QWEN),
    PrivateName("transformers.vision_utils:get_vision_window_index", "model_code", _NO_QWEN),
    PrivateName(
        "transformers.image_processing_utils:select_best_resolution", "model_code", "LLaVA-NeXT takes no picture"
    ),
    PrivateName(f"{_TILES}:get_optimal_tiled_canvas", "model_code", "InternVL takes no picture"),
    PrivateName(
        "transformers:WhisperFeatureExtractor.get_feature_extractor_dict", "model_code", "speech models do not load"
    ),
)
"""Every name that this folder uses and that transformers does not document. To look for those of
`model_code` imports the code of four families of models."""

_SET_BY_US = PrivateName(f"{_CONFIG}._attn_implementation_internal", "attention_settings", _NO_INSTRUMENT)


def missing(features: Collection[str] = ("attention_settings", "model_types", "model_code")) -> list[PrivateName]:
    """The names that the installed transformers lacks, of these modules of the folder."""
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
    for name in missing(("attention_settings", "model_types")):
        warnings.warn(f"transformers has no {name.path}: {name.without}", RuntimeWarning, stacklevel=2)
