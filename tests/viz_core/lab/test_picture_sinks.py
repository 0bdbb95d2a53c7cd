"""Sinks over pictures: rows against whole maps, what each patch adds, and what is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from viz_core.hub import HubModel
from viz_core.images.video import Video
from viz_core.lab.sinks import picture_rows
from viz_core.maps.contributions import contribution_norms
from viz_core.trace import intervene, pattern, record

Load = Callable[[str], HubModel]
TEXT = "The cat sat on the mat and looked at the old dog near the river."


@pytest.mark.parametrize("family", ["llava", "qwen3_vl", "smolvlm"])
def test_rows_over_a_video_and_what_each_patch_adds(family: str, tiny_model: Load) -> None:
    model = tiny_model(family)
    frames = [Image.new("RGB", (20, 30), (40 * i, 90, 200 - 40 * i)) for i in range(4)]
    given: dict[str, Any] = {"image": frames[1]} if family == "llava" else {"video": Video.of(frames)}
    run = model.run("The cat <image> sat on the mat", max_new_tokens=2, **given)
    with record(values=True) as trace, torch.no_grad():
        model.engine.model(**run.inputs)
    call, token = trace["decoder.1.self"], len(run.tokens) - 2
    W_o = next(part for name, part in model.network.named_modules() if name.endswith("layers.1.self_attn.o_proj"))
    found = picture_rows(model, run, "decoder.1.self", token)
    places = np.concatenate([grid.places.ravel() for grid in run.patches])
    np.testing.assert_allclose(found.weights, call.weights()[0, :, token], atol=1e-6)
    norms = contribution_norms(call, W_o)[0]
    np.testing.assert_allclose(found.added[:, places], norms[:, token][:, places], atol=1e-6)
    assert np.delete(found.added, places, axis=1).max() == 0
    weights = call.weights()[0, :, places.max() + 1 :].mean(dim=(0, 1)).numpy()
    np.testing.assert_allclose(found.attention[places], weights[places] / weights[places].mean(), rtol=1e-4)
    lengths = (norms / call.weights()[0])[:, -1].mean(dim=0).numpy()
    np.testing.assert_allclose(found.lengths[places], lengths[places] / lengths[places].mean(), rtol=1e-3)
    wanted = [i for i in places if found.attention[i] >= 3 and found.lengths[i] <= 0.5]
    assert list(found.sinks) == sorted(wanted)


def test_patches_that_nobody_looks_at_are_no_sinks(tiny_model: Load) -> None:
    model = tiny_model("llava")
    run = model.run("<image> sat on the mat", image=Image.new("RGB", (16, 16)), max_new_tokens=0)
    weights = torch.zeros(len(run.tokens), len(run.tokens))
    weights[:, -1] = 1
    with intervene({"decoder.1.self": pattern(None, weights)}):
        found = picture_rows(model, run, "decoder.1.self", len(run.tokens) - 1)
    assert not found.attention.any()
    assert found.sinks == ()


def test_a_corner_is_a_sink_only_where_it_adds_little(tiny_model: Load) -> None:
    """Every token gives half its weight to the first patch, whose value is then made a tenth as long."""
    model = tiny_model("llava")
    image = Image.new("RGB", (16, 16), (200, 30, 60))
    run = model.run("<image> sat on the mat", image=image, max_new_tokens=0)
    corner, count = int(run.patches[0].places[0, 0]), len(run.tokens)
    weights = torch.full((count, count), 0.5 / (count - 1))
    weights[:, corner] = 0.5
    projection = next(
        part
        for name, part in model.network.named_modules()
        if name.endswith("language_model.layers.1.self_attn.v_proj")
    )

    def shorten(_part: Any, _inputs: Any, values: torch.Tensor) -> torch.Tensor:
        factor = torch.ones(count, 1)
        factor[corner] = 0.1
        return values * factor

    with intervene({"decoder.1.self": pattern(None, weights)}):
        assert picture_rows(model, run, "decoder.1.self", count - 1).sinks == ()
        hook = projection.register_forward_hook(shorten)
        found = picture_rows(model, run, "decoder.1.self", count - 1)
        hook.remove()
    assert found.sinks == (corner,)
    assert found.attention[corner] > 3
    assert found.lengths[corner] < 0.5
    with pytest.raises(ValueError, match="a text with a picture or a video"):
        picture_rows(tiny_model("llama"), tiny_model("llama").run(TEXT, max_new_tokens=0), "decoder.1.self", 3)
