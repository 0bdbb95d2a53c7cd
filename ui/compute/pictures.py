"""Models that look at pictures, the pictures, and what the models make of them."""

from __future__ import annotations

import hashlib

from serving.models.model_spec import ModelSpec, ShippedClassifier
from serving.requests.classification import ClassificationRequest
from serving.requests.request import Picture
from serving.settings import settings
from ui.compute.lab_models import lab_vision_model
from ui.compute.models import map_groups, run
from viz_core.images.open_image import open_picture
from viz_core.images.synthetic import GARMENTS, SCENES
from viz_core.pretrained import Classification
from viz_core.pretrained.picture_model import PictureModel
from viz_core.view.map_group import MapGroup

LAB = "Lab: "
"""Before the name of a model that the model lab loaded."""


def picture_model(name: str) -> ModelSpec[PictureModel]:
    """A shipped classifier, or with "Lab: " before its name a vision model of the lab.

    Raises:
        HubError: if the lab has no such model.
    """
    if name.startswith(LAB):
        return lab_vision_model(name.removeprefix(LAB))
    return ShippedClassifier(name)


def sample_picture(name: str) -> Picture:
    """One of the drawn pictures."""
    return Picture(f"sample {name}", {**GARMENTS, **SCENES}[name]())


def read_picture(content: bytes) -> Picture:
    """The picture in a file, within this host's limits.

    Raises:
        PictureError: if it cannot be read or is too large; the message is for a person.
    """
    return Picture(hashlib.sha256(content).hexdigest(), open_picture(content, *settings().picture_limits))


def classification(request: ClassificationRequest) -> Classification:
    """What a model makes of a picture."""
    return run(request, "classification")


def picture_maps(
    request: ClassificationRequest, language: str, show_contributions: bool = False
) -> tuple[MapGroup, ...]:
    """The maps of a picture as the attention view shows them."""
    return map_groups(request, "vision-transformer", language, show_contributions)
