"""How like a text each patch of a picture is, for a model that compares the two."""

from __future__ import annotations

from functools import partial

import numpy as np

from asking.hub import HubRequest
from pages.model_lab.questions import likeness
from ui.chapter import Chapter
from ui.controls import escape
from ui.models import ask
from viz_core.figures.over_picture import over_picture_figure
from viz_core.hub import HubRun

_ROUNDING = 1e-5


def show_likeness(chapter: Chapter, asked: HubRequest, run: HubRun) -> None:
    """Cosines of the text with the picture and with each of its patches."""
    cosines, residual = ask(asked, likeness)
    frame = run.frame
    if frame is None:
        return
    rows, columns = frame.grid
    patches = cosines[len(cosines) - rows * columns :].reshape(rows, columns)
    most, least = (np.unravel_index(int(i), patches.shape) for i in (patches.argmax(), patches.argmin()))
    with chapter.card("likeness"):
        chapter.text("likeness", text=escape(asked.text), cosine=f"{cosines[0]:.3f}")
        names = chapter.words.group("figure")
        maps = {chapter.words("title.likeness"): patches}
        chapter.figure(
            "likeness",
            partial(over_picture_figure, frame.image, maps, None, names, "cosine", lowest=float(patches.min())),
            text=escape(asked.text),
            most=f"{patches[most]:.3f}",
            row=most[0] + 1,
            column=most[1] + 1,
            least=f"{patches[least]:.3f}",
            least_row=least[0] + 1,
            least_column=least[1] + 1,
        )
        with chapter.claim_row("claims-likeness"):
            chapter.claim("likeness", residual, _ROUNDING)
