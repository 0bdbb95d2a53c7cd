"""Requests to vision models: shipped ones, and those of the model lab."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from serving.models.model_spec import ModelSpec
from serving.requests.request import Picture, Request, with_heads_off
from viz_core.pretrained import Classification
from viz_core.pretrained.picture_model import PictureModel
from viz_core.trace import HeadsOff, intervene, switched_off
from viz_core.view.map_group import MapGroup
from viz_core.view.notebook_file import RunSource
from viz_core.view.picture import picture_groups


@dataclass(frozen=True)
class ClassificationRequest(Request[PictureModel, Classification]):
    """A picture to classify, and the heads that are switched off."""

    model: ModelSpec[PictureModel]
    picture: Picture
    off: HeadsOff = ()

    @property
    def without_payload(self) -> ClassificationRequest:
        return replace(self, picture=self.picture.without_payload)

    def run(self, model: PictureModel) -> Classification:
        prepared = model.prepare(self.picture.open())
        with intervene(switched_off(self.off)):
            return model.classify_prepared(prepared)

    def groups(self, run: Classification, labels: Mapping[str, str]) -> tuple[MapGroup, ...]:
        return picture_groups(run, labels)

    def run_source(self) -> RunSource:
        """How a notebook looks at it."""
        picture = self.picture.run_source()
        call = with_heads_off(self.off, "run = model.classify_prepared(model.prepare(image))")
        return self.model.run_source().then(f"{picture.code}\n{call}", picture.needs)
