"""All heads at a glance: one measure of each."""

from __future__ import annotations

from functools import partial

import numpy as np
import streamlit as st

from pages.model_lab import figures
from ui.chapter.chapter import Chapter
from ui.compute.slots import run_in_slot
from ui.text.head_link import head_link
from ui.text.words import load_words
from viz_core.view.map_group import MapGroup
from viz_core.view.state import ViewState


def fingerprints(chapter: Chapter, groups: tuple[MapGroup, ...], view: ViewState) -> None:
    """One measure of every head of the kind that is open above, as a map of layers by heads."""
    group = next(group for group in groups if group.id == view.group)
    chapter.text("fingerprints", kind=group.label)
    measures = run_in_slot(lambda: figures.measured(group), "fingerprints", ("fingerprints", group.stamp), "measuring")
    measure = str(chapter.controls.choice("measure", tuple(measures), next(iter(measures))))
    values = measures[measure]
    layer, head = divmod(int(np.nanargmax(values)), values.shape[1])
    st.markdown(load_words("attention-view")(f"about_{measure}"))
    chapter.figure(
        "fingerprints",
        partial(figures.fingerprint_figure, values, measure, chapter.words.group("figure")),
        measure=chapter.words(f"option.{measure}"),
        layers=values.shape[0],
        heads=values.shape[1],
        layer=layer + 1,
        head=head + 1,
        linked=head_link(group.id, layer, head),
        most=f"{values[layer, head]:.2f}",
        least=f"{np.nanmin(values):.2f}",
    )
