"""Where each family of vision-language models puts a picture in its prompt, and in what order.

transformers has this in processor classes, some of which need libraries for video; what they do with one picture is
written down here, and tests hold it against those that can be made.
"""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from PIL import Image
from torch import Tensor

from viz_core.hub.runs.llava_tiles import tiled
from viz_core.hub.runs.patch_grid import Box, box_seen
from viz_core.hub.runs.qwen_patches import MOST_PATCHES, Packed, unpacked
from viz_core.hub.runs.vision_frames import CallSelector, one_frame

MARK = "<image>"
"""Where a prompt says that the picture stands, for every family."""


@dataclass(frozen=True, eq=False)
class EncodedPicture:
    """A picture as a model takes it."""

    inputs: dict[str, Tensor]  # what the image processor made for the model
    prompt: str  # what stands in the prompt in its place
    # for each grid of patches its box on the picture, and the number of each patch among the picture's tokens, in the
    # order of the prompt
    grids: tuple[tuple[Box, Int[np.ndarray, "_ _"]], ...]
    # the pictures that the vision tower sees; None where its maps are not kept
    frames: Float[Tensor, "frames channels height width"] | None = None
    # the tokens, numbered likewise, that stand for the end of a row of patches
    row_ends: Int[np.ndarray, " rows"] | None = None


@dataclass(frozen=True)
class LayoutContext:
    """The facts of a model that a layout needs."""

    config: Any  # of the model
    processor: Any  # its image processor
    token: str  # the text of the token that stands for a patch
    num_special: int  # tokens of the vision tower before its patches
    beginning: str  # the text of the token that a text begins with; "" where there is none


@dataclass(frozen=True)
class Layout:
    """What is the same for all models of a family."""

    encode: Callable[[LayoutContext, Image.Image], EncodedPicture]  # a picture as its models take it
    template: str  # a prompt as they were trained on, `{text}` for what is asked
    closing: str = ""  # ends every prompt
    bare: bool = False  # whether the tokenizer puts no tokens of its own around the prompt
    # whether the prompt sees itself in both directions, and only what is written sees no future
    both_ways: bool = False
    # the name of the tokens' types, those of text and of patches in the prompt, and that of what is written
    types: tuple[str, int, int, int] | None = None
    # what is kept of a layer of the vision tower, for what the model is given; None for nothing
    tower: Callable[[LayoutContext, Mapping[str, Tensor]], CallSelector | None] = lambda _context, _inputs: one_frame
    whole: int = -1  # which of the frames is all of the picture


def _llava(context: LayoutContext, image: Image.Image) -> EncodedPicture:
    """A square cut from the middle, its patches row by row (Liu 2023)."""
    pixels = context.processor(images=image, return_tensors="pt")["pixel_values"]
    first = context.num_special if context.config.vision_feature_select_strategy == "full" else 0
    order = _row_by_row(_cells(pixels, context.config.vision_config.patch_size)) + first
    box = box_seen(context.processor, image.width, image.height)
    return EncodedPicture({"pixel_values": pixels}, context.token * (order.size + first), ((box, order),), pixels)


def _llava_next(context: LayoutContext, image: Image.Image) -> EncodedPicture:
    """All of the picture, squeezed into a square; then tiles of it in a size near its own, row by row of all tiles."""
    made = context.processor(images=image, return_tensors="pt")
    pixels, vision = made["pixel_values"], context.config.vision_config
    first = context.num_special if context.config.vision_feature_select_strategy == "full" else 0
    whole = _row_by_row(_cells(pixels, vision.patch_size)) + first
    tiles = tiled(image.height, image.width, context.config.image_grid_pinpoints, vision.patch_size)
    rows, columns = tiles.shape
    lines = _row_by_row((rows, columns + 1)) + first + whole.size
    box: Box = (0.0, 0.0, float(image.width), float(image.height))
    inputs = {name: made[name] for name in ("pixel_values", "image_sizes")}
    prompt = context.token * (first + whole.size + lines.size)
    return EncodedPicture(inputs, prompt, ((tiles.box, lines[:, :-1]), (box, whole)), pixels[0], lines[:, -1])


def _idefics(context: LayoutContext, image: Image.Image) -> EncodedPicture:
    """Tiles of the picture row by row, then all of it, small; squares of patches are merged (Laurençon 2024)."""
    made = context.processor(images=[[image]], return_tensors="pt", return_row_col_info=True)
    pixels, rows, columns = made["pixel_values"], made["rows"][0][0], made["cols"][0][0]
    inner = _row_by_row(_cells(pixels, context.config.vision_config.patch_size * context.config.scale_factor))
    patches, side = context.token * inner.size, "<fake_token_around_image>"
    tiles = [[f"{side}<row_{i + 1}_col_{j + 1}>{patches}" for j in range(columns)] for i in range(rows)]
    prompt = "".join("".join(row) + "\n" for row in tiles) + ("\n" if tiles else "")
    prompt += f"{side}<global-img>{patches}{side}"
    whole: Box = (0.0, 0.0, float(image.width), float(image.height))
    grids = [(whole, inner + rows * columns * inner.size)]
    if tiles:
        starts = _row_by_row((rows, columns)) * inner.size
        grids.insert(0, (whole, np.block([[inner + start for start in row] for row in starts])))
    inputs = {"pixel_values": pixels}
    if "pixel_attention_mask" in made:
        inputs["pixel_attention_mask"] = made["pixel_attention_mask"]
    return EncodedPicture(inputs, prompt, tuple(grids), pixels[0])


def _paligemma(context: LayoutContext, image: Image.Image) -> EncodedPicture:
    """All of the picture row by row, then the token that begins a text (Beyer 2024)."""
    pixels = context.processor(images=image, return_tensors="pt")["pixel_values"]
    order = _row_by_row(_cells(pixels, context.config.vision_config.patch_size))
    box = box_seen(context.processor, image.width, image.height)
    return EncodedPicture(
        {"pixel_values": pixels}, context.token * order.size + context.beginning, ((box, order),), pixels
    )


def _qwen(context: LayoutContext, image: Image.Image) -> EncodedPicture:
    """All of the picture at nearly its own size, squares of patches merged (Wang 2024, section 2.1)."""
    made = context.processor(images=image, return_tensors="pt")
    _, rows, columns = made["image_grid_thw"][0].tolist()
    merge = context.processor.merge_size
    order = _row_by_row((rows // merge, columns // merge))
    inputs = {name: made[name] for name in ("pixel_values", "image_grid_thw")}
    prompt = f"<|vision_start|>{context.token * order.size}<|vision_end|>"
    frames = None
    if rows * columns <= MOST_PATCHES:
        frames = unpacked(inputs["pixel_values"], inputs["image_grid_thw"], context.config.vision_config)
    return EncodedPicture(inputs, prompt, (((0.0, 0.0, float(image.width), float(image.height)), order),), frames)


def _packed(context: LayoutContext, inputs: Mapping[str, Tensor]) -> CallSelector | None:
    grid = inputs["image_grid_thw"]
    return Packed.of(context.config.vision_config, grid).laid_out if int(grid.prod()) <= MOST_PATCHES else None


_QWEN = Layout(
    _qwen,
    f"<|im_start|>user\n{MARK}{{text}}<|im_end|>\n<|im_start|>assistant\n",
    types=("mm_token_type_ids", 0, 1, 0),
    tower=_packed,
)
_MISTRAL = f"[INST] {MARK}\n{{text}} [/INST]"
_VICUNA = (
    "A chat between a curious human and an artificial intelligence assistant. The assistant gives helpful, detailed, "
    f"and polite answers to the human's questions. USER: {MARK}\n{{text}} ASSISTANT:"
)

LAYOUTS: Mapping[str, Layout] = {
    "llava": Layout(_llava, f"USER: {MARK}\n{{text}} ASSISTANT:"),
    "llava_next": Layout(_llava_next, _VICUNA, tower=lambda _context, _inputs: partial(one_frame, which=0), whole=0),
    "idefics3": Layout(_idefics, f"User:{MARK}{{text}}<end_of_utterance>\nAssistant:"),
    "smolvlm": Layout(_idefics, f"<|im_start|>User:{MARK}{{text}}<end_of_utterance>\nAssistant:"),
    "qwen2_vl": _QWEN,
    "qwen2_5_vl": _QWEN,
    "qwen3_vl": _QWEN,
    "paligemma": Layout(
        _paligemma,
        f"{MARK}answer en {{text}}",
        closing="\n",
        bare=True,
        both_ways=True,
        types=("token_type_ids", 0, 0, 1),
    ),
}
"""By model type."""


def layout_of(config: Any, vocabulary: Collection[str]) -> Layout:
    """The layout of a model, its prompt in the form of the training where models of one family differ in that.

    A LLaVA-NeXT on a Mistral is asked as that one is; the smaller SmolVLM call themselves an Idefics3, but begin as a
    SmolVLM does.

    Args:
        vocabulary: tokens that its tokenizer has.
    """
    kind = config.model_type
    if kind == "llava_next" and config.text_config.model_type == "mistral":
        return replace(LAYOUTS[kind], template=_MISTRAL)
    return LAYOUTS["smolvlm" if kind == "idefics3" and "<|im_start|>" in vocabulary else kind]


def _cells(pixels: Float[Tensor, "... height width"], cell: int) -> tuple[int, int]:
    return pixels.shape[-2] // cell, pixels.shape[-1] // cell


def _row_by_row(shape: tuple[int, int]) -> Int[np.ndarray, "rows columns"]:
    return np.arange(math.prod(shape)).reshape(shape)
