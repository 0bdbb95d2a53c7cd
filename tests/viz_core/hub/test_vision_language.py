"""Models that read a picture and a text together: the maps of eager, and each patch where it lies on the picture."""

import contextlib
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from PIL import Image, ImageDraw
from torch import Tensor

from tests.viz_core.hub.conftest import Tiny, TinyModel
from tests.viz_core.hub.families import maps_of
from tests.viz_core.hub.test_families import assert_same_maps, eager
from tests.viz_core.hub.tiny_talkers import FAMILIES
from viz_core.hub import HubError
from viz_core.hub.kinds import recognise
from viz_core.hub.runs import layouts
from viz_core.images.open_image import Video

PACKED = ["qwen2_vl", "qwen2_5_vl", "qwen3_vl"]
TEXT = "The cat <image> sat on the mat"


def features(model: Any, inputs: dict[str, Tensor]) -> Tensor:
    names = ("pixel_values", "pixel_attention_mask", "image_grid_thw", "image_sizes")
    with torch.no_grad():
        if "pixel_values_videos" in inputs:
            found = model.model.get_video_features(inputs["pixel_values_videos"], inputs["video_grid_thw"])
        else:
            found = model.model.get_image_features(**{n: inputs[n] for n in names if n in inputs} | strategy(model))
    return torch.cat([part.reshape(-1, part.shape[-1]) for part in found.pooler_output])


def strategy(model: Any) -> dict[str, Any]:
    config = model.config
    if config.model_type not in ("llava", "llava_next"):
        return {}
    return {
        "vision_feature_layer": config.vision_feature_layer,
        "vision_feature_select_strategy": config.vision_feature_select_strategy,
    }


def packed_maps(tower: Any, processor: Any, inputs: dict[str, Tensor]) -> dict[str, Tensor]:
    """The maps of a Qwen's tower by its own eager attention, window by window, laid out row by row.

    Where each patch stands in the sequence is seen, not worked out: of a picture whose patches grow brighter row by
    row, by how far what the first block is given lies from what it is given of a black one.
    """
    grid = inputs["image_grid_thw"]
    _, rows, columns = grid[0].tolist()
    ramp = np.kron(np.arange(rows * columns, dtype=np.uint8).reshape(rows, columns) * 4, np.ones((4, 4), np.uint8))
    given: list[Tensor] = []
    hook = tower.blocks[0].register_forward_pre_hook(lambda _block, args: given.append(args[0]))
    for shown in (ramp, np.zeros_like(ramp)):
        made = processor(images=Image.fromarray(shown).convert("RGB"), return_tensors="pt")
        assert torch.equal(made["image_grid_thw"], grid)
        with torch.no_grad():
            tower(made["pixel_values"], grid)
    hook.remove()
    order = (given[0] - given[1]).norm(dim=1).argsort()

    seen: dict[int, list[Tensor]] = {}
    heads = [block.attn for block in tower.blocks]
    eager = sys.modules[type(tower).__module__].eager_attention_forward

    def recording_attention(module: Any, *args: Any, **options: Any) -> Any:
        found = eager(module, *args, **options)
        seen.setdefault(heads.index(module), []).append(found[1])
        return found

    transformers.AttentionInterface.register("heard", recording_attention)
    before, tower.config._attn_implementation = tower.config._attn_implementation, "heard"
    with torch.no_grad():
        tower(inputs["pixel_values"], grid)
    tower.config._attn_implementation = before
    found = {}
    for layer, windows in seen.items():
        whole = [torch.block_diag(*(window[0, head] for window in windows)) for head in range(len(windows[0][0]))]
        found[f"vision.{layer}.self"] = torch.stack(whole)[None][:, :, order][..., order]
    return found


@pytest.mark.parametrize("medium", ["image", "video"])
@pytest.mark.parametrize("family", FAMILIES)
def test_maps_are_those_of_eager(
    family: str, medium: str, tiny: Tiny, tiny_model: TinyModel, picture: Image.Image, video: Video
) -> None:
    model = tiny_model(family)
    if medium == "video" and not model.card.takes_video:
        return
    shown: Any = video if medium == "video" else picture
    run = model.run(TEXT, **{medium: shown}, max_new_tokens=5)
    prompt = model.engine.prompt.prepare(TEXT, shown)
    plain = eager(model, tiny(family))
    options = {"max_new_tokens": 5, "do_sample": False, "suppress_tokens": list(model.engine.never_written())}
    with torch.no_grad():
        ids = plain.generate(**prompt.inputs, **options)
        beside = {name: value for name, value in run.inputs.items() if name not in ("input_ids", "logits_to_keep")}
        expected = plain(ids, **beside, output_attentions=True)
    assert [token.id for token in run.tokens] == ids[0].tolist()
    assert run.num_prompt_tokens == prompt.inputs["input_ids"].shape[1]
    maps = maps_of(SimpleNamespace(attentions=expected.attentions), "decoder")
    if family in PACKED and medium == "image":
        maps |= packed_maps(plain.model.visual, model.engine.prompt.context.processor, prompt.inputs)
    elif family in PACKED:  # an odd last frame is repeated, as a still picture is: its tower is that of the picture
        still = model.run(TEXT, image=video.frames[-1], max_new_tokens=0)
        maps |= {call.site: call.weights() for call in still.trace if call.stack == "vision"}
    else:
        tower = getattr(plain.model, "vision_tower", None) or plain.model.vision_model
        pixels = prompt.inputs["pixel_values"]
        with torch.no_grad():
            seen = tower(pixels.reshape(-1, *pixels.shape[-3:]), output_attentions=True)
        whole = 0 if family == "llava_next" else -1
        selected = [weights[whole:][:1] for weights in seen.attentions]
        maps |= maps_of(SimpleNamespace(attentions=selected), "vision")
    assert_same_maps(run.trace, maps)
    torch.testing.assert_close(run.output, expected.logits[0], atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(model.rerun(run), run.output)


def painted(frame: Image.Image, box: tuple[float, float, float, float]) -> Image.Image:
    copy = frame.copy()
    left, top, right, bottom = box
    ImageDraw.Draw(copy).rectangle((left, top, right - 1, bottom - 1), fill=(255, 0, 40))
    return copy


@pytest.mark.parametrize("medium", ["image", "video"])
@pytest.mark.parametrize("family", FAMILIES)
def test_each_patch_lies_where_it_is_said_to(family: str, medium: str, tiny_model: TinyModel) -> None:
    """A patch's own box painted over, in one frame, changes its own token most, of all tokens of its grid."""
    model = tiny_model(family)
    prompt = model.engine.prompt
    if medium == "video" and not model.card.takes_video:
        return
    grey = Image.new("RGB", (24, 32) if family == "llava_next" else (32, 48), (120, 120, 120))
    shown: Any = Video.of([grey] * 4) if medium == "video" else grey
    plain = prompt.prepare(TEXT, shown)
    before = features(model.network, plain.inputs)
    is_patch = plain.inputs["input_ids"][0] == (prompt.video_id if medium == "video" else prompt.patch_id)
    assert len(before) == int(is_patch.sum())
    numbers = (is_patch.cumsum(0) - 1).numpy().clip(0)
    if medium == "video":
        pairs = [(0, 1), (2, 3)] if family in PACKED else [(0,), (1,), (2,), (3,)]
        assert [grid.frames for grid in plain.grids] == pairs
    for grid in plain.grids:
        rows, columns = grid.shape
        for number, (row, column) in enumerate(((0, 0), (rows - 1, 0), (rows // 2, columns - 1))):
            changed: Any = painted(grey, grid.box_of(row, column))
            if medium == "video":
                frame = grid.frames[number % len(grid.frames)]
                changed = Video.of([changed if i == frame else grey for i in range(4)])
            after = features(model.network, prompt.prepare(TEXT, changed).inputs)
            difference = grid.over((after - before).norm(dim=-1).numpy()[numbers])
            assert np.unravel_index(difference.argmax(), difference.shape) == (row, column)


def test_tiles_are_one_grid_and_the_whole_picture_another(tiny_model: TinyModel, picture: Image.Image) -> None:
    """30 rows and 20 columns become 48 x 32 pixels: 3 x 2 tiles of 2 x 2 merged patches; then all of it in 2 x 2."""
    run = tiny_model("smolvlm").run(TEXT, image=picture, max_new_tokens=0)
    tiles, whole = run.patches
    assert (tiles.shape, whole.shape) == ((6, 4), (2, 2))
    assert tiles.box == whole.box == (0, 0, 20, 30)
    assert tiles.box_of(2, 3) == (15, 10, 20, 15)
    labels = [token.label for token in run.tokens]
    at = labels.index("<row_2_col_1>")
    assert labels[at + 1 : at + 5] == ["r3c1", "r3c2", "r4c1", "r4c2"]
    at = labels.index("<global-img>")
    assert labels[at + 1 : at + 5] == ["r1c1 (2)", "r1c2 (2)", "r2c1 (2)", "r2c2 (2)"]
    assert run.frame is not None
    assert (run.frame.grid, run.frame.image.size) == ((4, 4), (16, 16))
    assert [maps.id for maps in run.maps] == ["vision-self", "decoder-self"]
    run = tiny_model("llava").run(TEXT, image=picture, max_new_tokens=0)
    (grid,) = run.patches
    assert grid.places.tolist() == [[3, 4, 5, 6], [7, 8, 9, 10], [11, 12, 13, 14], [15, 16, 17, 18]]
    labels = [token.label for token in run.tokens]
    assert (labels[:4], labels[18:20]) == (["The", "·cat", "·", "r1c1"], ["r4c4", "·sat"])
    assert isinstance(tiny_model("llava").engine.serial, contextlib.nullcontext)
    assert not isinstance(tiny_model("qwen2_vl").engine.serial, contextlib.nullcontext), "one at a time, for its state"


def test_what_the_lab_does_not_know_is_refused(
    tiny_model: TinyModel, picture: Image.Image, monkeypatch: pytest.MonkeyPatch
) -> None:
    pixtral = transformers.LlavaConfig(vision_config={"model_type": "pixtral"})
    for config in (pixtral, transformers.Blip2Config()):
        with pytest.raises(HubError, match="in a way that the lab does not know"):
            recognise(config, "other")
    monkeypatch.setattr(layouts, "MAX_PATCHES", 31)
    run = tiny_model("qwen2_5_vl").run(TEXT, image=picture, max_new_tokens=0)
    assert [maps.id for maps in run.maps] == ["decoder-self"], "the tower of a large packed picture is not recorded"


def test_what_paligemma_reads_sees_itself_in_both_directions(tiny_model: TinyModel, picture: Image.Image) -> None:
    run = tiny_model("paligemma").run(TEXT, image=picture, target=" and looked at the dog")
    count = len(run.tokens) - run.num_prompt_tokens
    assert count == 5
    for call in run.trace:
        if call.stack == "decoder":
            weights = call.weights()[0]
            assert float(weights[:, : run.num_prompt_tokens, : run.num_prompt_tokens].min()) > 0
            assert float(weights[:, run.num_prompt_tokens :].triu(diagonal=run.num_prompt_tokens + 1).max()) == 0
