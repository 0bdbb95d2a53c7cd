"""All heads at a glance: attention distance."""

from __future__ import annotations

from pages.vision_transformer import head_figures
from pages.vision_transformer.inputs import PictureInputs
from ui.chapter.chapter import Chapter
from ui.compute.models import evaluate
from ui.text.numbers import series
from viz_core.lessons.vision_transformer.token_maps import head_distances
from viz_core.maps.distance import uniform_attention_distance
from viz_core.view.state import ViewState


def heads(chapter: Chapter, picture_inputs: PictureInputs, view: ViewState) -> None:
    """Draw the mean attention distance of every head, against a head with uniform weights."""
    chapter.text("heads")
    chapter.lazy("heads", lambda: _heads(chapter, picture_inputs, view), 440)


def _heads(chapter: Chapter, picture_inputs: PictureInputs, view: ViewState) -> None:
    names = chapter.words.group("figure")
    distances = evaluate(picture_inputs.request, head_distances)
    uniform = uniform_attention_distance(picture_inputs.found.grid, picture_inputs.facts.patch_size)
    line = series({names["uniform"]: f"{uniform:.2f}"}, chapter.words.language)
    opened = (view.layer, view.head)
    chapter.figure(
        "distance",
        head_figures.distance_figure(distances.numpy(), uniform, opened, names | {"uniform": line}),
        uniform=f"{uniform:.2f}",
        first=f"{float(distances[0].mean()):.2f}",
        last=f"{float(distances[-1].mean()):.2f}",
    )
