"""Tokens with places in a drawing of molecules, a picture or a sound."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float

from ui.text.words import Words
from ui.widgets.component import component
from viz_core.lab.places import Drawing, encode_places

_mount = component("places")


def draw_places(
    key: str,
    drawing: Drawing,
    weights: Float[np.ndarray, "queries keys"],
    words: Words,
    *,
    start: int = 0,
    truth: Sequence[Sequence[int]] = (),
    strongest: Sequence[int] = (),
) -> None:
    """Draw it, with a chapter's words of the group "places"; other arguments as of `encode_places`."""
    sentences = words.group("places")
    data = encode_places(drawing, weights, sentences, words.language, start=start, truth=truth, strongest=strongest)
    _mount(key=key, data=data)
