"""Tokens with places in a drawing of molecules, a picture or a sound."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import streamlit as st
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
    on_mask: Callable[[int], None] | None = None,
    **options: Any,
) -> None:
    """Draw it, with a chapter's words of the group "places"; `options` are those of `encode_places`.

    Args:
        on_mask: receives a key that the reader masks or shows again, before the page reruns.
    """

    def clicked() -> None:
        place = (st.session_state.get(key) or {}).get("mask")
        if on_mask and isinstance(place, int) and 0 <= place < drawing.num_keys:
            on_mask(place)

    sentences = words.group("places")
    if on_mask is None:
        sentences = {name: text for name, text in sentences.items() if name not in ("mask", "unmask")}
    _mount(key=key, data=encode_places(drawing, weights, sentences, words.language, **options), on_mask_change=clicked)
