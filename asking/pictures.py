"""Pictures for the vision models: those that ship, and those of the lab."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from asking.model_spec import ModelSpec
from asking.request import Picture, Request
from viz_core.pretrained import Classification
from viz_core.pretrained.picture_model import PictureModel
from viz_core.view.map_group import MapGroup
from viz_core.view.picture import picture_groups
from viz_core.view.runnable import Recipe


@dataclass(frozen=True)
class PictureRequest(Request[PictureModel, Classification]):
    """What a vision model is shown."""

    model: ModelSpec[PictureModel]
    picture: Picture

    @property
    def without_payload(self) -> PictureRequest:
        return PictureRequest(self.model, self.picture.without_payload)

    def run(self, model: PictureModel) -> Classification:
        return model.look(model.prepare(self.picture.open()))

    def groups(self, run: Classification, labels: Mapping[str, str]) -> tuple[MapGroup, ...]:
        return picture_groups(run, labels)

    def recipe(self) -> Recipe:
        """How a notebook looks at it."""
        picture = self.picture.recipe()
        return self.model.recipe().then(f"{picture.code}\nrun = model.look(model.prepare(image))", picture.needs)
