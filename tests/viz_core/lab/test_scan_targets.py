"""A scan with targets and measures of one's own: a registered role as a target, and alignments counted by hand."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from viz_core.hub import HubModel, Maps
from viz_core.lab.scan import scan
from viz_core.lab.scan_targets import STRONGEST, Alignment
from viz_core.maps.head_measure import MapBlock, Measure

TinyModel = Callable[[str], HubModel]
TEXTS = ["A cat sat on the mat.", "No.", "He is calm, they said."]

pytestmark = pytest.mark.usefixtures("few_repeats")


def after(maps: Maps, text: Any) -> torch.Tensor:
    """The token after each query."""
    return torch.ones(len(maps.text_keys), len(maps.text_keys)).tril(1).triu(1)


@pytest.mark.parametrize("family", ["bert", "gpt-oss"])
def test_a_target_of_ones_own_is_a_role(tiny_model: TinyModel, family: str) -> None:
    role = "next" if family == "bert" else "previous"  # of a decoder with sinks
    texts = list[Any]()

    def neighbour(maps: Maps, text: Any) -> torch.Tensor | None:
        texts.append(text)
        return None if text == TEXTS[1] else after(maps, text) if role == "next" else after(maps, text).T

    (kind,) = scan(tiny_model(family), TEXTS, batch=3, targets={"neighbour": neighbour}).kinds.values()
    expected = kind.values[role].copy()
    expected[1] = np.nan
    np.testing.assert_array_equal(kind.values["neighbour"], expected)
    measured = kind.measured["neighbour"][[0, 2], 1], kind.measured[role][[0, 2], 1]
    np.testing.assert_array_equal(*measured)
    assert texts == TEXTS


def test_a_head_can_have_a_role_of_ones_own(tiny_model: TinyModel) -> None:
    def seen(maps: Maps, text: Any) -> torch.Tensor:
        return torch.ones(len(maps.text_keys), len(maps.text_keys)).triu(2) == 0  # all but what no one looks at

    scanned = scan(tiny_model("gpt2"), TEXTS, targets={"seen": seen}, measures=["entropy"])
    (kind,) = scanned.kinds.values()
    assert list(kind.measured) == ["seen", "entropy"], "only what was named, and the targets"
    assert kind.role_of(0) is None, "all that a causal head can see is no role beyond chance"


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


def test_a_measure_of_ones_own(tiny_model: TinyModel) -> None:
    def largest(block: MapBlock) -> torch.Tensor:
        return block.weights.amax(dim=-1).sum(dim=-1)

    own = Measure("largest", "share", 99, lambda _: True, lambda _: 1.0, sums=largest)
    model = tiny_model("bert")
    (kind,) = scan(model, TEXTS, measures=[own, "previous"]).kinds.values()
    assert list(kind.measured) == ["previous", "largest"]
    weights = torch.cat([call.weights()[0] for call in model.run(TEXTS[0]).trace])
    np.testing.assert_allclose(kind.values["largest"][0], weights.amax(dim=-1).mean(dim=-1), atol=1e-6)


def test_a_frame_has_a_row_for_each_head_and_measure(tiny_model: TinyModel) -> None:
    found = scan(tiny_model("bert"), TEXTS, measures=["previous", "entropy"])
    (kind,) = found.kinds.values()
    frame = found.frame()
    assert list(frame.columns[:4]) == ["layer", "head", "measure", "mean"]
    assert set(frame["kind"]) == {"encoder-self"}
    assert len(frame) == 2 * len(kind.heads)
    (row,) = frame[(frame.layer == 1) & (frame["head"] == 2) & (frame.measure == "previous")].to_dict("records")
    place = kind.heads.index((1, 2))
    summary = kind.summary("previous")
    assert (row["mean"], row["low"], row["chance"]) == (summary.mean[place], summary.low[place], summary.chance[place])
    assert (row["p95"], row["texts"]) == (summary.quantiles[2, place], 3)


def test_what_cannot_be_measured_is_refused(tiny_model: TinyModel) -> None:
    model = tiny_model("bert")
    for options, message in {
        "unknown": ({"measures": ["sharpness"]}, "expected a Measure or one of .*entropy.*, got 'sharpness'"),
        "taken": ({"targets": {"previous": after}}, "names of your own, got 'previous', which is registered"),
        "size": ({"targets": {"a": lambda *_: torch.ones(2, 2)}}, r"expected a mask of \(\d+, \d+\) from 'a'"),
    }.values():
        with pytest.raises(ValueError, match=message):
            scan(model, TEXTS, **options)
    with pytest.raises(ValueError, match="positions from 0 to 4"):
        Alignment.of(5, [(0, 5)], [1])
    with pytest.raises(ValueError, match=r"keys of all pairs among \[1\], got 2"):
        Alignment.of(5, [(0, 2)], [1])
