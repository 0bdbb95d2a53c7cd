"""Where pictures and videos stand in a prompt: what transformers' own processors write, and where each patch lies."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from PIL import Image

from tests.viz_core.hub.conftest import noise
from viz_core.hub import HubModel, PatchGrid
from viz_core.hub.runs import layouts
from viz_core.hub.runs.layouts import number_words, tiled
from viz_core.hub.runs.pictures import box_seen, merged_in_time, unpacked
from viz_core.images.video import Video

Tiny = Callable[[str], Path]
TinyModel = Callable[[str], HubModel]
TEXT = "The cat <image> sat on the mat"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("family", ["llava", "llava_next", "idefics3", "paligemma"])
def test_prompts_are_those_of_transformers_own_processors(
    family: str, tiny: Tiny, tiny_model: TinyModel, picture: Image.Image
) -> None:
    """Those of the other families need libraries for video."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny(family))
    images = transformers.AutoImageProcessor.from_pretrained(tiny(family), backend="pil")
    if family == "llava":
        processor: Any = transformers.LlavaProcessor(images, tokenizer, 4, "default", num_additional_image_tokens=1)
    elif family == "llava_next":
        processor = transformers.LlavaNextProcessor(images, tokenizer, 4, "default", num_additional_image_tokens=1)
    elif family == "idefics3":
        processor = transformers.Idefics3Processor(images, tokenizer, image_seq_len=4)
    else:
        images.image_seq_length = 16
        processor = transformers.PaliGemmaProcessor(images, tokenizer)
    expected = processor(images=picture, text=TEXT, return_tensors="pt")
    ours = tiny_model(family).engine.prompt.prepare(TEXT, picture).inputs
    assert ours["input_ids"].tolist() == expected["input_ids"].tolist()
    assert torch.equal(ours["pixel_values"], expected["pixel_values"])


def test_prompts_of_the_families_whose_processors_need_more(tiny_model: TinyModel, picture: Image.Image) -> None:
    """Their own functions for the text, on what the image processor made."""
    from transformers.models.qwen2_vl.processing_qwen2_vl import Qwen2VLProcessor
    from transformers.models.smolvlm.processing_smolvlm import get_image_prompt_string

    model = tiny_model("smolvlm").engine.prompt
    tokens = "<fake_token_around_image>", "<image>", "<global-img>"
    for size, rows, columns in ((picture.size, 3, 2), ((48, 16), 1, 3)):
        shown = model.layout.encode(model.context, picture.resize(size))
        assert shown.prompt == get_image_prompt_string(rows, columns, 4, *tokens)
    model = tiny_model("qwen2_vl").engine.prompt
    shown = model.layout.encode(model.context, picture)
    itself = SimpleNamespace(image_token="<|image_pad|>", image_processor=SimpleNamespace(merge_size=2))
    expected = Qwen2VLProcessor.replace_image_token(itself, shown.inputs, 0)
    assert shown.prompt == f"<|vision_start|>{expected}<|vision_end|>"


def test_a_border_and_a_cut_in_pixels_of_the_picture() -> None:
    """100 x 60 to a shortest edge of 30 is 50 x 30, whose middle 30 x 30 are columns 10 to 40: 20 to 80 before."""
    cut = SimpleNamespace(size={"shortest_edge": 30}, do_center_crop=True, crop_size={"height": 30, "width": 30})
    assert box_seen(cut, 100, 60) == (20, 0, 80, 60)
    padded = SimpleNamespace(do_pad=True, size={"shortest_edge": 30}, do_center_crop=False)
    assert box_seen(padded, 100, 60) == (0, -20, 100, 80)
    both = SimpleNamespace(**{**vars(cut), "do_pad": True})
    assert box_seen(both, 60, 100) == (-20, 0, 80, 100)
    assert box_seen(SimpleNamespace(do_center_crop=False), 7, 5) == (0, 0, 7, 5)
    grid = PatchGrid((20, 0, 80, 60), np.arange(6).reshape(2, 3))
    assert grid.box_of(1, 2) == (60, 30, 80, 60)
    assert grid.over(np.arange(6.0)).tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_border_as_wide_as_a_patch_is_left_out() -> None:
    """20 x 30 fits into 32 x 32 as 22 x 32 from column 5 on: of 8 columns of 4 the first, 0 to 4, and the last hold
    nothing, and the six left lie from 4 to 28, which is (4 - 5) 20 / 22 to (28 - 5) 20 / 22 of the picture."""
    standing, lying = tiled(30, 20, [[16, 32], [32, 16], [32, 32]], 4), tiled(20, 30, [[32, 32]], 4)
    assert standing == ((8, 6), pytest.approx((-10 / 11, 0, 230 / 11, 30)))
    assert lying == ((6, 8), pytest.approx((0, -10 / 11, 30, 230 / 11)))


def test_a_prompt_is_in_the_form_of_its_own_training() -> None:
    """Models of one family that were trained on other forms, by what their cards show."""
    on_llama, on_mistral = (
        layouts.layout_of(transformers.LlavaNextConfig(text_config={"model_type": kind}), ())
        for kind in ("llama", "mistral")
    )
    assert on_llama.template.endswith(" USER: <image>\n{text} ASSISTANT:")
    assert on_mistral.template == "[INST] <image>\n{text} [/INST]"
    idefics, small = (layouts.layout_of(transformers.Idefics3Config(), known) for known in ((), ("<|im_start|>",)))
    assert small.template == f"<|im_start|>{idefics.template}"


def test_two_frames_are_packed_as_by_transformers(tiny_model: TinyModel, video: Video) -> None:
    from transformers.models.qwen3_vl.video_processing_qwen3_vl import Qwen3VLVideoProcessor

    context = tiny_model("qwen2_vl").engine.prompt.context
    frames = [*video.frames, video.frames[-1]]
    made = context.processor(images=frames, return_tensors="pt")
    packed, grid = made["pixel_values"], made["image_grid_thw"]
    count = len(packed) // 4
    stills = [unpacked(packed[i * count : (i + 1) * count], grid[:1], context.config.vision_config) for i in range(4)]
    videos = torch.stack([still[0] for still in stills])[None]
    expected, frames_merged, rows, columns = Qwen3VLVideoProcessor.patchify(None, videos, 4, 2, 2)
    assert torch.equal(merged_in_time(packed, 2, 2), expected[0])
    assert (frames_merged, rows, columns) == (2, *grid[0, 1:].tolist())


def test_prompts_of_videos_are_those_of_transformers_own_processors(
    tiny_model: TinyModel, video: Video, monkeypatch: pytest.MonkeyPatch
) -> None:
    from transformers.models.internvl.processing_internvl import InternVLProcessor
    from transformers.models.qwen2_vl.processing_qwen2_vl import Qwen2VLProcessor
    from transformers.models.qwen3_vl.processing_qwen3_vl import Qwen3VLProcessor
    from transformers.models.smolvlm import processing_smolvlm
    from transformers.video_utils import VideoMetadata

    def shown(family: str) -> Any:
        prompt = tiny_model(family).engine.prompt
        return prompt.layout.encode_video(prompt.context, video)

    metadata = VideoMetadata(total_num_frames=3, fps=2.0, duration=1.5, frames_indices=[0, 1, 2])
    merging = SimpleNamespace(merge_size=2, temporal_patch_size=2)
    itself = SimpleNamespace(video_token="<|video_pad|>", video_processor=merging)
    given = shown("qwen2_vl").inputs
    expected = Qwen2VLProcessor.replace_video_token(itself, given, 0)
    assert shown("qwen2_vl").prompt == f"<|vision_start|>{expected}<|vision_end|>"
    assert shown("qwen2_5_vl").prompt == f"<|vision_start|>{expected}<|vision_end|>"
    per_grid = 2 / VideoMetadata(total_num_frames=3, fps=2.0, frames_indices=[0, 1, 2]).sampled_fps
    assert shown("qwen2_5_vl").inputs["second_per_grid_ts"].tolist() == [per_grid]

    itself.vision_start_token, itself.vision_end_token = "<|vision_start|>", "<|vision_end|>"
    itself._calculate_timestamps = lambda *args: Qwen3VLProcessor._calculate_timestamps(itself, *args)
    given = {**shown("qwen3_vl").inputs, "video_metadata": [metadata]}
    assert shown("qwen3_vl").prompt == Qwen3VLProcessor.replace_video_token(itself, given, 0)

    monkeypatch.setattr(processing_smolvlm, "num2words", {3: "three"}.get)
    side = {"fake_image_token": "<fake_token_around_image>", "global_image_token": "<global-img>"}
    itself = SimpleNamespace(image_token="<image>", image_seq_len=4, **side)
    metadata = VideoMetadata(total_num_frames=3, fps=2.0, duration=1.5, frames_indices=[0, 1, 2])
    given = {"pixel_values": shown("smolvlm").inputs["pixel_values"], "video_metadata": [metadata]}
    assert shown("smolvlm").prompt == f" {processing_smolvlm.SmolVLMProcessor.replace_video_token(itself, given, 0)}"

    tokens = {"start_image_token": "<img>", "end_image_token": "</img>", "image_token": "<IMG_CONTEXT>"}
    itself = SimpleNamespace(image_seq_length=4, **tokens)
    given = {"pixel_values_videos": [shown("internvl").inputs["pixel_values"]]}
    assert shown("internvl").prompt == InternVLProcessor.replace_video_token(itself, given, 0)
    model = tiny_model("internvl").engine.prompt
    for size, tiles in (((48, 16), 4), ((20, 30), 7), ((16, 16), 1)):
        still = model.layout.encode(model.context, noise(0).resize(size))
        assert still.prompt == InternVLProcessor.replace_image_token(itself, {"num_patches": [tiles]}, 0)


def test_numbers_in_words() -> None:
    words = {0: "zero", 8: "eight", 19: "nineteen", 20: "twenty", 21: "twenty-one", 64: "sixty-four", 100: "100"}
    assert {number: number_words(number) for number in words} == words


def test_a_space_before_a_video_is_written_once(tiny_model: TinyModel, video: Video) -> None:
    prompt = tiny_model("smolvlm").engine.prompt
    with_space, without = (
        prompt.prepare(text, video).inputs["input_ids"] for text in ("User: <image>Hi", "User:<image>Hi")
    )
    assert torch.equal(with_space, without)
