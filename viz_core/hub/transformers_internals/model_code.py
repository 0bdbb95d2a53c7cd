"""Functions within the code of single models and processors."""

import importlib
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor


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
