"""Sinks of texts and pictures against whole maps, and scans with targets and measures of one's own."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image

from tests.viz_core.hub.conftest import TinyModel
from viz_core.hub import HubModel
from viz_core.images.open_image import Video
from viz_core.lab.scan import scan
from viz_core.lab.scan_results import STRONGEST, Alignment
from viz_core.lab.sinks import hidden_tokens, picture_rows, sinks_of, windowed
from viz_core.maps.contributions import contribution_norms
from viz_core.maps.head_measure import Measure
from viz_core.trace import intervene, pattern, record

Load = Callable[[str], HubModel]
TEXT = "The cat sat on the mat and looked at the old dog near the river."


@pytest.mark.parametrize(("family", "learned"), [("llama", 0), ("gpt-oss", 1), ("bert", 0)])
def test_shares_and_lengths_are_those_of_the_whole_maps(family: str, learned: int, tiny_model: Load) -> None:
    model = tiny_model(family)
    run = model.run(TEXT, max_new_tokens=0 if family != "bert" else None)
    kind = "encoder-self" if family == "bert" else "decoder-self"
    found = sinks_of(model, run, kind)
    with record(values=True) as trace, torch.no_grad():
        model.engine.model(**run.inputs)
    assert found.lengths is not None
    for layer, call in enumerate(run.trace):
        weights = call.weights()[0, :, 1:]
        np.testing.assert_allclose(found.shares[layer], weights[:, :, learned].mean(dim=1), atol=1e-6)
        if learned:
            assert found.learned is not None
            np.testing.assert_allclose(found.learned[layer], weights[:, :, 0].mean(dim=1), atol=1e-6)
        values = trace[call.site].values[0]
        for head in range(4):
            first, *others = values[head * len(values) // 4, learned:].norm(dim=-1).tolist()
            assert found.lengths[layer, head] == pytest.approx(first / np.mean(others), rel=1e-4)
    count = len(run.tokens)
    even = 1 / count if family == "bert" else np.mean([1 / seen for seen in range(2, count + 1)])
    assert found.even == pytest.approx(even)
    assert (found.learned is None) == (not learned)


def test_a_model_s_own_code_hides_its_values_and_a_translator_has_three_kinds(tiny_model: Load) -> None:
    bloom = tiny_model("bloom")
    assert sinks_of(bloom, bloom.run(TEXT, max_new_tokens=0), "decoder-self").lengths is None
    t5 = tiny_model("t5")
    run = t5.run(TEXT, target="the dog")
    found = sinks_of(t5, run, "decoder-cross")
    np.testing.assert_allclose(found.shares[0], run.trace["decoder.0.cross"].weights(keys=0)[0].mean(dim=1), atol=1e-6)
    assert found.even == pytest.approx(1 / len(run.tokens))


@pytest.mark.parametrize(("size", "with_first"), [(6, 0), (6, 4)])
def test_a_window_is_that_mask(size: int, with_first: int, tiny_model: Load) -> None:
    """transformers' own attention under a mask made by hand gives the same perplexity of the same words."""
    model = tiny_model("llama")
    run = model.run(TEXT, max_new_tokens=0)
    found = windowed(model, run, size)
    ids = torch.tensor([[token.id for token in run.tokens]])
    n = ids.shape[1]
    i, j = torch.arange(n)[:, None], torch.arange(n)
    seen = (j <= i) & ((i - j < size - with_first) | (j < with_first))
    mask = torch.zeros(1, 1, n, n).masked_fill(~seen, torch.finfo(torch.float32).min)
    with torch.no_grad():
        logits = model.engine.model(ids, attention_mask=mask).logits[0]
    expected = math.exp(float(F.cross_entropy(logits[size:-1], ids[0, size + 1 :])))
    assert (found.with_first if with_first else found.sliding) == pytest.approx(expected, rel=1e-4)
    assert found.full == pytest.approx(math.exp(float(F.cross_entropy(run.output[size:-1], ids[0, size + 1 :]))))
    assert found.counted == n - 1 - size
    assert len({found.full, found.sliding, found.with_first}) == 3


@pytest.mark.parametrize("family", ["bert", "sorter"])
def test_a_token_that_nobody_sees_is_a_token_that_is_not_there_for_the_others(family: str, tiny_model: Load) -> None:
    """The others' states, or a classifier's probabilities, are what they are where the mask leaves that key out."""
    model = tiny_model(family)
    run = model.run("The cat sat.")
    found = {hidden.place: hidden.distance for hidden in hidden_tokens(model, run)}
    n = len(run.tokens)
    assert list(found)[:2] == [0, n - 1]
    for place in (0, n - 1):
        mask = torch.zeros(1, 1, n, n)
        mask[..., place] = torch.finfo(torch.float32).min
        mask[..., place, place] = 0
        with torch.no_grad():
            output = model.engine.model(**{**run.inputs, "attention_mask": mask})[0][0]
        if family == "sorter":
            expected = (output.softmax(dim=-1) - run.output.softmax(dim=-1)).abs().sum() / 2
        else:
            turned = 1 - F.cosine_similarity(output, run.output, dim=-1)
            expected = turned[torch.arange(n) != place].mean()
        assert found[place] == pytest.approx(float(expected), abs=1e-5)


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


TEXTS = ["A cat sat on the mat.", "No.", "He is calm, they said."]


@pytest.mark.usefixtures("few_repeats")
def test_targets_and_measures_of_ones_own(tiny_model: TinyModel) -> None:
    def after(maps: Any, text: str) -> torch.Tensor | None:
        return None if text == TEXTS[1] else torch.ones((len(maps.text_keys),) * 2).tril(1).triu(1)

    model, sums = tiny_model("bert"), lambda block: block.weights.amax(-1).sum(-1)
    own = Measure("largest", "share", 9, lambda _: True, lambda _: 1.0, sums=sums)
    (kind,) = scan(model, TEXTS, batch=3, targets={"after": after}, measures=[own, "next"]).kinds.values()
    assert list(kind.measured) == ["next", "after", "largest"]
    np.testing.assert_array_equal(kind.measured["after"][::2], kind.measured["next"][::2])
    assert np.isnan(kind.values["after"][1]).all()
    weights = torch.cat([call.weights()[0] for call in model.run(TEXTS[0]).trace])
    np.testing.assert_allclose(kind.values["largest"][0], weights.amax(dim=-1).mean(dim=-1), atol=1e-6)
    for options, message in (
        ({"measures": ["sharpness"]}, "expected a Measure or one of .*entropy.*, got 'sharpness'"),
        ({"targets": {"previous": after}}, "names of your own, got 'previous', which is registered"),
        ({"targets": {"a": lambda *_: torch.ones(2, 2)}}, r"expected a mask of \(\d+, \d+\) from 'a'"),
    ):
        with pytest.raises(ValueError, match=message):
            scan(model, TEXTS, **options)


@pytest.mark.usefixtures("few_repeats")
def test_an_alignment_of_two_spans_is_counted_by_hand(tiny_model: TinyModel) -> None:
    pairs, span = [(4, 1), (5, 2), (5, 1)], [1, 2, 3]
    model = tiny_model("bert")
    aligned = {"pairs": lambda maps, _: Alignment.of(len(maps.text_keys), pairs, span)}
    (kind,) = scan(model, TEXTS[:1], targets=aligned).kinds.values()
    weights = torch.cat([call.weights()[0] for call in model.run(TEXTS[0]).trace])
    share = (weights[:, 4, 1] + weights[:, 5, 1] + weights[:, 5, 2]) / 2
    np.testing.assert_allclose(kind.values["pairs"][0], share, atol=1e-6)
    best = weights[..., 1:4].argmax(dim=-1) + 1
    right = ((best[:, 4] == 1).double() + (best[:, 5] != 3).double()) / 2
    np.testing.assert_array_equal(kind.values["pairs" + STRONGEST][0], right)
    assert kind.measured["pairs" + STRONGEST][0, 1] == pytest.approx((1 / 3 + 2 / 3) / 2)
    assert kind.measured["pairs"][0, 1] == pytest.approx(1.5 / weights.shape[-1])
