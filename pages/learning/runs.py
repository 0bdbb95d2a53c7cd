"""A section of the page: a recorded run or the reader's own, every head at every step."""

from __future__ import annotations

import numpy as np

from pages.learning.own_run import own_run
from pages.learning.recorded_run import recorded_run
from ui.chapter.chapter import Chapter

RUN_CONTROLS = ("source", "run", "beside", "seed", "other-seed", "step", "quantity", "measure", "task", "positions")
"""Controls of this section, as links name them."""


def runs(chapter: Chapter) -> None:
    """Draw the chosen run and its data."""
    source = chapter.controls.choice("source", ("recorded", "own"), "recorded")
    run = recorded_run(chapter) if source == "recorded" else own_run(chapter)
    if run is None:
        return
    film, measured = run.film, run.measures["previous"]
    arrays = {
        "previous": measured.reshape(len(film.shots), -1),
        "loss": film.loss,
        "accuracy": film.accuracy,
        "held_out": film.held_out,
        "maps": film.maps,
    }
    heads = [f"{layer + 1}.{head + 1}" for layer, head in np.ndindex(measured.shape[1:])]
    chapter.downloads(arrays, rows=[str(step) for step in film.shots], columns=heads)
