"""Vision models, pictures, and their classifications."""

from __future__ import annotations

import hashlib

from serving.models.model_spec import ModelSpec, ShippedClassifier
from serving.requests.classification import ClassificationRequest
from serving.requests.request import Picture
from serving.settings import settings
from ui.compute.lab_models import lab_vision_model
from ui.compute.models import map_groups, run
from viz_core.images.drawn import drawn_picture
from viz_core.images.open_image import open_picture
from viz_core.maps.contribution_shares import ContributionKind
from viz_core.pretrained import Classification
from viz_core.pretrained.picture_model import PictureModel
from viz_core.view.map_group import MapGroup

LAB = "Lab: "
"""Prefix of the name of a vision model of the model lab."""


def picture_model(name: str) -> ModelSpec[PictureModel]:
    """Return a shipped classifier, or a vision model of the lab if its name begins with "Lab: ".

    Raises:
        HubError: if the lab has no such model.
    """
    if name.startswith(LAB):
        return lab_vision_model(name.removeprefix(LAB))
    return ShippedClassifier(name)


def sample_picture(name: str) -> Picture:
    """Return one of the drawn pictures."""
    return Picture(f"sample {name}", drawn_picture(name))


def read_picture(content: bytes) -> Picture:
    """Read a picture file within the limits of this server.

    Raises:
        PictureError: if it cannot be read or is too large; the message is for the visitor.
    """
    return Picture(hashlib.sha256(content).hexdigest(), open_picture(content, *settings().picture_limits))


def classification(request: ClassificationRequest) -> Classification:
    """Return the classification of a picture."""
    return run(request, "classification")


def picture_maps(
    request: ClassificationRequest, language: str, contribution_kind: ContributionKind = ""
) -> tuple[MapGroup, ...]:
    """Return the maps of a picture for an attention view."""
    return map_groups(request, "vision-transformer", language, contribution_kind)
