"""The bytes of a heatmap, read back."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from ui.widgets.heatmap import WORD_NAMES, Exact, Heatmap, encode_heatmap, signed_heatmap, to_pixels
from viz_core.view.framing import unframe

WORDS = {name: f"the {name}" for name in WORD_NAMES}


def test_pixels_round_to_the_nearest_of_256_steps() -> None:
    values = torch.tensor([[-1.0, -0.5, 0.0], [0.5, 1.0, 7.0]])
    assert to_pixels(values, -1.0, 1.0).tolist() == [[0, 64, 128], [191, 255, 255]]
    assert torch.equal(values[1, 2], torch.tensor(7.0))  # what came in is left as it was


def test_bytes_hold_pixels_exact_values_and_labels() -> None:
    values = torch.randn(3, 5, generator=torch.Generator().manual_seed(0))
    heatmap = signed_heatmap(values, "word", "dimension", row_labels=("a", "b<i>", "\ud800"), limit=2.0)
    header, start = unframe(data := encode_heatmap(heatmap, WORDS, "pt"))
    pixels = np.frombuffer(data, np.uint8, 15, start + header["pixels"]).reshape(3, 5)
    cells = np.frombuffer(data, np.float32, 15, start + header["exact"]["offset"]).reshape(3, 5)
    assert np.array_equal(pixels, heatmap.pixels)
    assert np.array_equal(cells, values.numpy())
    assert (header["low"], header["high"]) == (-2.0, 2.0)
    assert header["row_labels"] == ["a", "b<i>", "\ud800"]
    assert (header["rows"], header["columns"], header["language"], header["words"]) == (3, 5, "pt", WORDS)
    assert header["colours"][5] == "#f7f7f7"  # zero has no colour


def test_pixels_alone_are_known_to_be_inexact() -> None:
    heatmap = Heatmap(np.zeros((2, 2), np.uint8), 0.0, 1.0, "row", "column", scale="Viridis")
    header, _ = unframe(encode_heatmap(heatmap, WORDS))
    assert header["exact"] is None
    assert header["colours"][0] == "#440154"


def test_a_map_of_zeros_still_has_a_scale() -> None:
    heatmap = signed_heatmap(torch.zeros(2, 2), "row", "column")
    assert (heatmap.low, heatmap.high) == (-1.0, 1.0)


def test_maps_that_cannot_be_drawn_are_refused() -> None:
    good = Heatmap(np.zeros((2, 3), np.uint8), 0.0, 1.0, "row", "column", Exact("cells", np.zeros((2, 3), np.float32)))
    with pytest.raises(ValueError, match=r"at least one cell, got shape \(0, 3\)"):
        replace(good, pixels=np.zeros((0, 3), np.uint8))
    with pytest.raises(ValueError, match="row_labels: expected 2, got 1"):
        replace(good, row_labels=("a",))
    with pytest.raises(ValueError, match=r"low: expected below high=1.0, got 1.0"):
        replace(good, low=1.0)
    with pytest.raises(ValueError, match="got none for hint"):
        encode_heatmap(good, {name: "" for name in WORD_NAMES if name != "hint"})
