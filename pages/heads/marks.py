"""Why do heads look at nothing? The shipped translator's self-attention before and after its heads were mended."""

import json
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from ui.chapter.chapter import Chapter
from ui.text.numbers import localised
from viz_core.runtime.assets import ASSETS, reading
from viz_core.view.grouping import weight_calls
from viz_core.view.map_group import MapGroup
from viz_core.view.state import DisplayOptions, ViewState

WHEN = ("before", "now")
"""The weights that shipped first, and those that ship; `python -m recipes marks` records both."""


@lru_cache(maxsize=2)
def recorded(when: str) -> dict[str, Any]:
    """What rests on the marks of a translator: shares, lengths of values, BLEU, and the maps of a sentence."""
    path = ASSETS / "marks" / f"{when}.json"
    with reading(path):
        return json.loads(path.read_text(encoding="utf-8"))


def sample_groups(words: Callable[[str], str], when: str) -> tuple[MapGroup, ...]:
    """The recorded maps of one sentence, a group for the encoder and one for the decoder."""
    return tuple(
        MapGroup(
            kind,
            words(f"figure.{kind}"),
            *(words(f"marks.{kind}"),) * 2,
            tuple(maps["queries"]),
            tuple(maps["keys"]),
            weight_calls([_rows(layer) for layer in maps["maps"]]),
        )
        for kind, maps in recorded(when)["sample"].items()
    )


def _rows(in_255ths: list[list[list[int]]]) -> np.ndarray:
    """Weights of a layer's heads; what was rounded away comes back by scaling each row to sum to 1."""
    weights = np.asarray(in_255ths, dtype=np.float32)
    return weights / weights.sum(axis=-1, keepdims=True)


def layer_table(chapter: Chapter) -> pd.DataFrame:
    """A row for each layer: weight on the mark, heads that rest on it, and how long its values are."""
    before, now = (recorded(when)["layers"] for when in WHEN)
    words, rows = chapter.words.group("marks-column"), []
    for kind in before:
        for layer, (old, new) in enumerate(zip(before[kind], now[kind], strict=True), start=1):
            row: dict[str, Any] = {words["layer"]: f"{chapter.words(f'figure.{kind}')} {layer}"}
            for part in ("median", "above", "value"):
                row |= {words[f"{part}-before"]: old[part], words[f"{part}-now"]: new[part]}
            rows.append(row)
    return pd.DataFrame(rows)


def why_nothing(chapter: Chapter) -> None:
    """Draw the maps before and now, a table by layer, what the marks are worth, and two cures."""
    before, now = map(recorded, WHEN)
    chapter.text("marks.why", heads=now["heads"], above_before=before["above"], above_now=now["above"])
    chapter.attention_view(
        sample_groups(chapter.words, "before"),
        ViewState("encoder-self", 1, 0, display=DisplayOptions(compare="side", other="1.1.0")),
        key="marks",
        second=sample_groups(chapter.words, "now"),
        inputs=(chapter.words("marks.before"), chapter.words("marks.now")),
        head_param=chapter.controls.key("marks-head"),
        pin_param=chapter.controls.key("marks-pin"),
        display_param=chapter.controls.key("marks-look"),
    )
    st.dataframe(layer_table(chapter), hide_index=True)
    chapter.guidance("marks")
    language = chapter.words.language
    bleu = {
        f"{setting}_{when}": localised(f"{each['bleu'][setting]:.1f}", language)
        for when, each in zip(WHEN, (before, now), strict=True)
        for setting in ("with", "without")
    }
    chapter.text("marks.off", sentences=before["sentences"], **bleu)
    chapter.text("marks.mended", guided=now["guided"])
    chapter.text("marks.cures")
