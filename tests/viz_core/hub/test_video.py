"""Videos before vision-language models: the maps of eager, prompts of transformers' own processors, merged frames."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw
from torch import Tensor

from tests.viz_core.hub.families import maps_of
from tests.viz_core.hub.test_parity import assert_same_maps, eager
from viz_core.hub import HubError, HubModel
from viz_core.hub.runs.layouts import number_words
from viz_core.hub.runs.tower_maps import merged_in_time, unpacked
from viz_core.images.video import Video

Tiny = Callable[[str], Path]
TinyModel = Callable[[str], HubModel]
PACKED = ["qwen2_vl", "qwen2_5_vl", "qwen3_vl"]
FRAMED = ["smolvlm", "internvl"]
TEXT = "The cat <image> sat on the mat"


def noise(seed: int) -> Image.Image:
    pixels = torch.randint(0, 256, (30, 20, 3), generator=torch.Generator().manual_seed(seed), dtype=torch.uint8)
    return Image.fromarray(pixels.numpy())


@pytest.fixture
def video() -> Video:
    """Three frames, which two cannot share evenly, half a second apart."""
    return Video.of([noise(seed) for seed in range(3)], fps=2)


@pytest.mark.parametrize("family", [*PACKED, *FRAMED])
def test_maps_are_those_of_eager(family: str, tiny: Tiny, tiny_model: TinyModel, video: Video) -> None:
    model = tiny_model(family)
    run = model.run(TEXT, video=video, max_new_tokens=4)
    prompt = model.engine.prompt.prepare(TEXT, video)
    plain = eager(model, tiny(family))
    with torch.no_grad():
        ids = plain.generate(
            **prompt.inputs, max_new_tokens=4, do_sample=False, suppress_tokens=list(model.engine.never_written())
        )
        beside = {name: value for name, value in run.inputs.items() if name not in ("input_ids", "logits_to_keep")}
        expected = plain(ids, **beside, output_attentions=True)
    assert [token.id for token in run.tokens] == ids[0].tolist()
    maps = maps_of(SimpleNamespace(attentions=expected.attentions), "decoder")
    if family in PACKED:  # an odd last frame is repeated, as a still picture is: its tower is that of the picture
        still = model.run(TEXT, image=video.frames[-1], max_new_tokens=0)
        maps |= {call.site: call.weights() for call in still.trace if call.stack == "vision"}
    else:
        tower, pixels = (
            getattr(plain.model, "vision_tower", None) or plain.model.vision_model,
            prompt.inputs["pixel_values"],
        )
        with torch.no_grad():
            seen = tower(pixels.reshape(-1, *pixels.shape[-3:]), output_attentions=True)
        maps |= maps_of(SimpleNamespace(attentions=[weights[-1:] for weights in seen.attentions]), "vision")
    assert_same_maps(run.trace, maps)
    torch.testing.assert_close(run.output, expected.logits[0], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(model.again(run), run.output)


def features(model: Any, inputs: dict[str, Tensor]) -> Tensor:
    """What the language model is given of a video, a row a token, by the model's own code."""
    with torch.no_grad():
        if "pixel_values_videos" in inputs:
            found = model.model.get_video_features(inputs["pixel_values_videos"], inputs["video_grid_thw"])
        else:
            names = ("pixel_values", "pixel_attention_mask")
            options = {"vision_feature_layer": -1, "vision_feature_select_strategy": "default"}
            given = {name: inputs[name] for name in names if name in inputs}
            found = model.model.get_image_features(
                **given, **(options if hasattr(model.model, "pixel_shuffle") else {})
            )
    return torch.cat([part.reshape(-1, part.shape[-1]) for part in found.pooler_output])


@pytest.mark.parametrize("family", [*PACKED, *FRAMED])
def test_each_patch_lies_on_its_frame(family: str, tiny_model: TinyModel) -> None:
    """A patch's box painted over, in one frame, changes its own token most, of all tokens of the video."""
    model = tiny_model(family)
    grey = Image.new("RGB", (32, 48), (120, 120, 120))
    plain = model.engine.prompt.prepare(TEXT, Video.of([grey] * 4))
    before = features(model.engine.model, plain.inputs)
    ids = model.engine.prompt.video_id
    numbers = ((plain.inputs["input_ids"][0] == ids).cumsum(0) - 1).numpy()
    assert len(before) == sum(grid.places.size for grid in plain.grids)
    assert [grid.frames for grid in plain.grids] == ([(0, 1), (2, 3)] if family in PACKED else [(i,) for i in range(4)])
    for number, frame in ((0, 0), (len(plain.grids) - 1, 3), (len(plain.grids) - 1, 2 if family in PACKED else 3)):
        grid = plain.grids[number]
        row, column = grid.shape[0] - 1, grid.shape[1] // 2
        painted = grey.copy()
        left, top, right, bottom = grid.box_of(row, column)
        ImageDraw.Draw(painted).rectangle((left, top, right - 1, bottom - 1), fill=(255, 0, 40))
        frames = [painted if i == frame else grey for i in range(4)]
        after = features(model.engine.model, model.engine.prompt.prepare(TEXT, Video.of(frames)).inputs)
        changed = (after - before).norm(dim=-1).numpy()
        assert changed.argmax() == numbers[grid.places[row, column]]


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


def test_prompts_are_those_of_transformers_own_processors(
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


def test_what_a_run_of_a_video_says(tiny_model: TinyModel, video: Video) -> None:
    run = tiny_model("qwen2_vl").run(TEXT, video=video, max_new_tokens=0)
    assert run.video is video
    assert run.image is None
    labels = [run.tokens[grid.places[0, 1]].label for grid in run.patches]
    assert labels == ["r1c2", "r1c2 (2)"]
    assert np.concatenate([grid.places.ravel() for grid in run.patches]).tolist() == list(range(4, 20))
    card = tiny_model("qwen2_vl").card
    assert (card.takes_video, tiny_model("llava").card.takes_video) == (True, False)
    assert run.frame is not None
    assert run.prompt == TEXT


def test_a_space_before_a_video_is_written_once(tiny_model: TinyModel, video: Video) -> None:
    prompt = tiny_model("smolvlm").engine.prompt
    with_space, without = (
        prompt.prepare(text, video).inputs["input_ids"] for text in ("User: <image>Hi", "User:<image>Hi")
    )
    assert torch.equal(with_space, without)


def test_what_is_refused(tiny_model: TinyModel, video: Video) -> None:
    with pytest.raises(HubError, match="not trained on videos"):
        tiny_model("llava").run(TEXT, video=video)
    with pytest.raises(HubError, match="takes no video"):
        tiny_model("bert").run("The cat", video=video)
    with pytest.raises(HubError, match="a picture or a video, not both"):
        tiny_model("smolvlm").run(TEXT, video=video, image=noise(0))
    with pytest.raises(HubError, match="bring a picture"):
        tiny_model("smolvlm").run(TEXT)
    with pytest.raises(HubError, match="The picture and the text together have 25 tokens; at most 20"):
        tiny_model("qwen2_vl").run(TEXT, video=video, max_tokens=20)
