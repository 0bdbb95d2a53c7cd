"""Where each family of vision-language models puts a picture or a video in its prompt, and in what order.

The processors of transformers write the same prompts, and tests compare them. They cannot stand in here: those of
SmolVLM, InternVL and Qwen-VL cannot be made without torchvision, which the hub does without, and none says where on the
picture the patch lies that a token stands for.
"""

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from PIL import Image
from torch import Tensor

from viz_core.hub.runs.pictures import (
    MAX_PATCHES,
    Box,
    CallSelector,
    Packed,
    PatchGrid,
    box_seen,
    merged_in_time,
    one_frame,
    unpacked,
)
from viz_core.hub.transformers_internals import best_resolution, internvl_tiles, require_picture_code
from viz_core.images.open_image import Video


def tiled(height: int, width: int, sizes: Any, patch: int) -> tuple[tuple[int, int], Box]:
    """Rows and columns of the patches of all tiles together, and their box in pixels of the picture (Liu 2024,
    "LLaVA-NeXT"; `unpad_image` of its code).

    The picture is made as large as fits into the best of the sizes, in the middle of it. Of the border, which is as
    wide on both sides, rows or columns of patches are left out that hold nothing else.

    Args:
        sizes: (height, width) of all tiles together, in pixels.
        patch: height and width of a patch in pixels.
    """
    high, wide = best_resolution((height, width), sizes)
    rows, columns = high // patch, wide // patch
    above = beside = 0
    if width / height > columns / rows:
        above = (rows - int(round(height * (columns / width), 7))) // 2
    else:
        beside = (columns - int(round(width * (rows / height), 7))) // 2
    scale = min(wide / width, high / height)  # of the picture; the border fills what is left
    tall, broad = min(math.ceil(height * scale), high), min(math.ceil(width * scale), wide)
    left, top = (wide - broad) // 2, (high - tall) // 2
    across = [(x * patch - left) * width / broad for x in (beside, columns - beside)]
    down = [(y * patch - top) * height / tall for y in (above, rows - above)]
    return (rows - 2 * above, columns - 2 * beside), (across[0], down[0], across[1], down[1])


_WORDS = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen".split()
_WORDS += "seventeen eighteen nineteen twenty thirty forty fifty sixty seventy eighty ninety".split()


def number_words(number: int) -> str:
    """Return a number from 0 to 99 in words: "twenty-one"; larger ones in digits."""
    if number < 20 or number > 99:
        return _WORDS[number] if number < 20 else str(number)
    tens, ones = divmod(number, 10)
    return _WORDS[18 + tens] + (f"-{_WORDS[ones]}" if ones else "")


MARK = "<image>"
"""Where a prompt says that the picture or video stands, for every family."""


@dataclass(frozen=True, eq=False)
class EncodedPicture:
    """A picture or video as a model takes it."""

    inputs: dict[str, Tensor]  # what the image processor made for the model
    prompt: str  # what stands in the prompt in its place
    grids: tuple[PatchGrid, ...]  # `places` are numbers among the picture's tokens, in the order of the prompt
    frames: Float[Tensor, "frames channels height width"] | None = None  # seen by the tower, where its maps are kept
    row_ends: Int[np.ndarray, " rows"] | None = None  # the tokens, numbered likewise, that end a row of patches


@dataclass(frozen=True)
class LayoutContext:
    """The facts of a model that a layout needs."""

    config: Any  # of the model
    processor: Any  # its image processor
    token: str  # the text of the token that stands for a patch
    video_token: str  # the same within a video; most families have but one
    num_special: int  # tokens of the vision tower before its patches
    beginning: str  # the text of the token that a text begins with; "" where there is none
    video_options: Mapping[str, Any]  # of the model's own processor of videos, where its folder has one


@dataclass(frozen=True)
class Layout:
    """What is the same for all models of a family."""

    encode: Callable[[LayoutContext, Image.Image], EncodedPicture]
    template: str  # a prompt as its models were trained on, `{text}` for what is asked
    closing: str = ""  # ends every prompt
    add_special_tokens: bool = True  # the tokenizer puts some of its own around the prompt
    both_ways: bool = False  # the prompt sees itself in both directions, and only what is written sees no future
    types: tuple[str, int, int, int, int] | None = None  # their name; of text, a picture, a video, and what is written
    tower: Callable[[LayoutContext, Mapping[str, Tensor]], CallSelector | None] = lambda _context, _inputs: one_frame
    whole: int = -1  # which of the frames is all of the picture
    encode_video: Callable[[LayoutContext, Video], EncodedPicture] | None = None  # None where not trained on any


def _llava(context: LayoutContext, image: Image.Image) -> EncodedPicture:
    """A square cut from the middle, its patches row by row (Liu 2023)."""
    pixels = context.processor(images=image, return_tensors="pt")["pixel_values"]
    first = context.num_special if getattr(context.config, "vision_feature_select_strategy", "") == "full" else 0
    order = _order(pixels, context.config.vision_config.patch_size) + first
    box = box_seen(context.processor, image.width, image.height)
    grids = (PatchGrid(box, order),)
    return EncodedPicture({"pixel_values": pixels}, context.token * (order.size + first), grids, pixels)


def _llava_next(context: LayoutContext, image: Image.Image) -> EncodedPicture:
    """All of the picture, squeezed into a square; then tiles of it in a size near its own, row by row of all tiles."""
    made = context.processor(images=image, return_tensors="pt")
    pixels, vision = made["pixel_values"], context.config.vision_config
    first = context.num_special if context.config.vision_feature_select_strategy == "full" else 0
    whole = _order(pixels, vision.patch_size) + first
    sizes = context.config.image_grid_pinpoints
    (rows, columns), box = tiled(image.height, image.width, sizes, vision.patch_size)
    lines = _row_by_row((rows, columns + 1)) + first + whole.size
    inputs = {name: made[name] for name in ("pixel_values", "image_sizes")}
    prompt = context.token * (first + whole.size + lines.size)
    grids = (PatchGrid(box, lines[:, :-1]), _over_all(image, whole))
    return EncodedPicture(inputs, prompt, grids, pixels[0], lines[:, -1])


def _idefics(context: LayoutContext, image: Image.Image) -> EncodedPicture:
    """Tiles of the picture row by row, then all of it, small; squares of patches are merged (Laurençon 2024)."""
    made = context.processor(images=[[image]], return_tensors="pt", return_row_col_info=True)
    pixels, rows, columns = made["pixel_values"], made["rows"][0][0], made["cols"][0][0]
    inner = _order(pixels, context.config.vision_config.patch_size * context.config.scale_factor)
    patches, side = context.token * inner.size, "<fake_token_around_image>"
    tiles = [[f"{side}<row_{i + 1}_col_{j + 1}>{patches}" for j in range(columns)] for i in range(rows)]
    prompt = "".join("".join(row) + "\n" for row in tiles) + ("\n" if tiles else "")
    prompt += f"{side}<global-img>{patches}{side}"
    return EncodedPicture(_pixels(made), prompt, _tile_grids(image, (rows, columns), inner), pixels[0])


def _smolvlm_video(context: LayoutContext, video: Video) -> EncodedPicture:
    """All of each frame, small, after its minute and second (Marafioti 2025, "SmolVLM")."""
    size = {name: value for name in ("size", "max_image_size") if (value := context.video_options.get(name))}
    if sampling := context.video_options.get("video_sampling"):
        size["size"] = sampling["video_size"]
    made = context.processor(images=[list(video.frames)], return_tensors="pt", do_image_splitting=False, **size)
    pixels, cell = made["pixel_values"][0], context.config.vision_config.patch_size * context.config.scale_factor
    order = _order(pixels, cell)
    side, patches = "<fake_token_around_image>", context.token * order.size
    prompt = f" You are provided the following series of {number_words(len(video.frames))} frames from a "
    prompt += f"{timedelta(seconds=int(video.seconds))} [H:MM:SS] video.\n"  # a space before: as in the chat template
    for time in video.times:
        prompt += f"\nFrame from {int(time // 60):02d}:{int(time % 60):02d}:{side}<global-img>{patches}{side}"
    return EncodedPicture(_pixels(made), prompt + "\n\n", _each_frame(video, order), pixels)


def _internvl(context: LayoutContext, image: Image.Image) -> EncodedPicture:
    """Tiles of the picture, stretched to the best of a few shapes, then all of it, small; squares of patches are merged
    by pixel shuffle (Chen 2024, "How far are we to GPT-4V?", section 3)."""
    made = context.processor(images=image, return_tensors="pt", crop_to_patches=True)
    pixels = made["pixel_values"]
    inner, count = _internvl_order(context, pixels), len(pixels)
    shape = internvl_tiles(context.processor, image.height, image.width) if count > 1 else (0, 0)
    prompt = f"<img>{context.token * inner.size * count}</img>"
    return EncodedPicture(_pixels(made), prompt, _tile_grids(image, shape, inner), pixels)


def _internvl_video(context: LayoutContext, video: Video) -> EncodedPicture:
    """Each frame without tiles, after its number."""
    size = {name: value for name in ("size",) if (value := context.video_options.get(name))}
    made = context.processor(images=list(video.frames), return_tensors="pt", crop_to_patches=False, **size)
    order = _internvl_order(context, made["pixel_values"])
    lines = (f"Frame{i + 1}: <img>{context.token * order.size}</img>" for i in range(len(video.frames)))
    return EncodedPicture(_pixels(made), "\n".join(lines), _each_frame(video, order), made["pixel_values"])


def _internvl_order(context: LayoutContext, pixels: Tensor) -> Int[np.ndarray, "rows columns"]:
    cell = round(context.config.vision_config.patch_size[0] / context.config.downsample_ratio)
    return _order(pixels, cell)


def _paligemma(context: LayoutContext, image: Image.Image) -> EncodedPicture:
    """All of the picture row by row, then the token that begins a text (Beyer 2024)."""
    encoded = _llava(context, image)
    return replace(encoded, prompt=encoded.prompt + context.beginning)


def _qwen(context: LayoutContext, image: Image.Image) -> EncodedPicture:
    """All of the picture at nearly its own size, squares of patches merged (Wang 2024, section 2.1)."""
    made = context.processor(images=image, return_tensors="pt")
    _, rows, columns = made["image_grid_thw"][0].tolist()
    merge = context.processor.merge_size
    order = _row_by_row((rows // merge, columns // merge))
    inputs = {name: made[name] for name in ("pixel_values", "image_grid_thw")}
    prompt = f"<|vision_start|>{context.token * order.size}<|vision_end|>"
    frames = None
    if rows * columns <= MAX_PATCHES:
        frames = unpacked(inputs["pixel_values"], inputs["image_grid_thw"], context.config.vision_config)
    return EncodedPicture(inputs, prompt, (_over_all(image, order),), frames)


def _qwen_video(context: LayoutContext, video: Video) -> EncodedPicture:
    """Frames at nearly their own size, two merged in time, as are squares of patches (Wang 2024, section 2.1).

    An odd last frame is repeated. Qwen2.5-VL is told the seconds between two merged frames, Qwen3-VL reads the time of
    each in words; its limit of pixels is one for all frames together.
    """
    processor, vision, kind = context.processor, context.config.vision_config, context.config.model_type
    step, count = vision.temporal_patch_size, len(video.frames)
    groups = [[min(j, count - 1) for j in range(i, i + step)] for i in range(0, count, step)]
    size = context.video_options.get("size") or dict(processor.size)
    if kind == "qwen3_vl":
        size = {name: size[name] // count for name in ("shortest_edge", "longest_edge")}
    made = processor(images=[video.frames[i] for group in groups for i in group], size=size, return_tensors="pt")
    grid = made["image_grid_thw"][:1] * torch.tensor([[len(groups), 1, 1]])
    _, rows, columns = grid[0].tolist()
    order = _row_by_row((rows // processor.merge_size, columns // processor.merge_size))
    pixels = merged_in_time(made["pixel_values"], len(groups), step)
    inputs = {"pixel_values_videos": pixels, "video_grid_thw": grid}
    patches, prompt = context.video_token * order.size, ""
    for group in groups:
        time = (video.times[group[0]] + video.times[group[-1]]) / 2
        prompt += f"<{time:.1f} seconds><|vision_start|>{patches}<|vision_end|>" if kind == "qwen3_vl" else patches
    if kind != "qwen3_vl":
        prompt = f"<|vision_start|>{prompt}<|vision_end|>"
    if kind == "qwen2_5_vl":
        inputs["second_per_grid_ts"] = torch.tensor([step * video.seconds / count])
    merged = zip(_each_frame(video, order), groups, strict=False)
    grids = tuple(replace(grid, frames=tuple(dict.fromkeys(group))) for grid, group in merged)
    frames = unpacked(pixels[-rows * columns :], grid, vision) if rows * columns <= MAX_PATCHES else None
    return EncodedPicture(inputs, prompt, grids, frames)


def _packed(context: LayoutContext, inputs: Mapping[str, Tensor]) -> CallSelector | None:
    grid = inputs["video_grid_thw" if "video_grid_thw" in inputs else "image_grid_thw"]
    return Packed.of(context.config.vision_config, grid).laid_out if int(grid[0, 1:].prod()) <= MAX_PATCHES else None


_QWEN = Layout(
    _qwen,
    f"<|im_start|>user\n{MARK}{{text}}<|im_end|>\n<|im_start|>assistant\n",
    types=("mm_token_type_ids", 0, 1, 2, 0),
    tower=_packed,
    encode_video=_qwen_video,
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
    "smolvlm": Layout(
        _idefics, f"<|im_start|>User:{MARK}{{text}}<end_of_utterance>\nAssistant:", encode_video=_smolvlm_video
    ),
    "internvl": Layout(
        _internvl,
        f"<|im_start|>user\n{MARK}\n{{text}}<|im_end|>\n<|im_start|>assistant\n",
        encode_video=_internvl_video,
    ),
    "qwen2_vl": _QWEN,
    "qwen2_5_vl": _QWEN,
    "qwen3_vl": _QWEN,
    "paligemma": Layout(
        _paligemma,
        f"{MARK}answer en {{text}}",
        closing="\n",
        add_special_tokens=False,
        both_ways=True,
        types=("token_type_ids", 0, 0, 0, 1),
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
    require_picture_code(kind)
    if kind == "llava_next" and config.text_config.model_type == "mistral":
        return replace(LAYOUTS[kind], template=_MISTRAL)
    return LAYOUTS["smolvlm" if kind == "idefics3" and "<|im_start|>" in vocabulary else kind]


def _order(pixels: Float[Tensor, "... height width"], cell: int) -> Int[np.ndarray, "rows columns"]:
    """Numbers of the cells of a picture, row by row."""
    return _row_by_row((pixels.shape[-2] // cell, pixels.shape[-1] // cell))


def _over_all(image: Image.Image, places: Int[np.ndarray, "rows columns"]) -> PatchGrid:
    return PatchGrid((0.0, 0.0, float(image.width), float(image.height)), places)


def _each_frame(video: Video, order: Int[np.ndarray, "rows columns"]) -> tuple[PatchGrid, ...]:
    frames = enumerate(video.frames)
    return tuple(replace(_over_all(frame, order + i * order.size), frames=(i,)) for i, frame in frames)


def _tile_grids(
    image: Image.Image, tiles: tuple[int, int], inner: Int[np.ndarray, "rows columns"]
) -> tuple[PatchGrid, ...]:
    """The grid over all tiles, row by row of tiles, if there are any; then that of the whole picture."""
    whole = _over_all(image, inner + math.prod(tiles) * inner.size)
    if not math.prod(tiles):
        return (whole,)
    joined = np.block([[inner + start * inner.size for start in row] for row in _row_by_row(tiles)])
    return (_over_all(image, joined), whole)


def _pixels(made: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: made[name] for name in ("pixel_values", "pixel_attention_mask") if name in made}


def _row_by_row(shape: tuple[int, int]) -> Int[np.ndarray, "rows columns"]:
    return np.arange(math.prod(shape)).reshape(shape)
