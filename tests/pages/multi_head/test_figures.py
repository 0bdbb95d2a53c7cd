"""The multi-head figures show the library's numbers."""

from __future__ import annotations

import numpy as np
import pytest

from pages.multi_head.figures import FLOW, flow_figure
from ui.text.words import load_words

WORDS = load_words("multi-head", "en")
LABELS = WORDS.group("option") | WORDS.group("figure")
SHAPES = {block.name: (1, i, 2 * i) for i, block in enumerate(FLOW)}


def test_every_tensor_of_the_flow_has_its_shape() -> None:
    figure = flow_figure(SHAPES, 4, "weights", LABELS)
    texts = figure.data[-1]
    assert len(texts.text) == len(FLOW)
    for block, text in zip(FLOW, texts.text, strict=True):
        assert text == f"<b>{LABELS[block.name]}</b><br>(1, {SHAPES[block.name][1]}, {SHAPES[block.name][2]})"


@pytest.mark.parametrize("heads", [1, 2, 7])
def test_blocks_in_heads_are_cut_into_as_many(heads: int) -> None:
    figure = flow_figure(SHAPES, heads, "input", LABELS)
    cuts = [trace for trace in figure.data if trace.mode == "lines" and trace.opacity == 0.35]
    assert len(cuts) == (0 if heads == 1 else sum(block.cut for block in FLOW))
    assert all(np.isnan(trace.x).sum() == heads - 1 for trace in cuts)
    if heads == 2:
        assert cuts[0].x[0] == pytest.approx(0.5)  # queries stand from 0 to 1


def test_a_flow_needs_every_shape_and_a_real_choice() -> None:
    with pytest.raises(ValueError, match="shapes: expected one for each tensor, got none for input"):
        flow_figure({name: shape for name, shape in SHAPES.items() if name != "input"}, 1, "keys", LABELS)
    with pytest.raises(ValueError, match="chosen: expected one of input, .*, got 'masks'"):
        flow_figure(SHAPES, 1, "masks", LABELS)
