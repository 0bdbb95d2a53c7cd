"""Models that look at pictures and what they answered, cached within bounds and shared, read-only, by all sessions."""

from __future__ import annotations

from typing import Any

from asking.model_spec import Model, Shipped
from asking.pictures import Viewing
from asking.request import Picture
from ui.compute import computed
from ui.models import runner
from ui.words import load_words
from viz_core.images.drawn import GARMENTS, SCENES
from viz_core.pretrained import Classification
from viz_core.pretrained.picture_model import PictureFacts
from viz_core.view.map_group import MapGroup

LAB = "Lab: "
"""Before the name of a model that the model lab loaded."""


def picture_model(name: str) -> Model:
    """A shipped classifier, or with "Lab: " before its name a vision model of the lab.

    Raises:
        HubError: if the lab has no such model.
    """
    if name.startswith(LAB):
        from pages.model_lab.vision import lab_vision  # brings the hub's libraries along: only where it is asked for

        return lab_vision(name.removeprefix(LAB))
    return Shipped(name, "classification")


def sample(name: str) -> Picture:
    """One of the drawn pictures."""
    return Picture(f"sample {name}", {**GARMENTS, **SCENES}[name]())


@computed()
def picture_facts(model: Model) -> PictureFacts:
    """What can be read off a model.

    Raises:
        ValueError: if there is no such model, or it cannot be had, or does not look at pictures.
    """
    facts: PictureFacts = runner().about(model, "facts")
    return facts


@computed()
def position_table(model: Model, grid: tuple[int, int]) -> Any:
    """The learned positions of a grid of patches, (1, patches, d); None where the model has no such table."""
    return runner().about(model, "positions", grid)


@computed()
def classification(model: Model, picture: Picture) -> Classification:
    """What a model makes of a picture; nothing in it changes, so sessions that ask the same share it."""
    return runner().run(Viewing(model, picture))


@computed()
def picture_maps(model: Model, picture: Picture, language: str) -> tuple[MapGroup, ...]:
    """The maps of a picture as the attention view shows them; they keep their thumbnails."""
    return runner().groups(Viewing(model, picture), load_words("vision-transformer", language).group("view"))


@computed()
def picture_look(model: Model, picture: Picture, question: str, *arguments: Any) -> Any:
    """The answer to one of `Viewing.looks` about what a model made of a picture."""
    return runner().look(Viewing(model, picture), question, *arguments)
