"""The models that the lab offers."""

from __future__ import annotations

import contextlib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from serving.requests.hub import HubModelSpec, HubVisionSpec
from serving.settings import settings
from viz_core.hub import HubError, local_models
from viz_core.hub.kinds import kind_named, recognise
from viz_core.hub.load import import_transformers
from viz_core.hub.shipped import shipped_kinds, shipped_names
from viz_core.hub.store.files import SAFE, SHIPPED_FOLDER

_OPENED = "writer-en"
"""What the lab opens on: it is small, and says something of what a reader types."""


@dataclass(frozen=True)
class HubOffer:
    """What visitors of the lab may load.

    Attributes:
        names: the only models; () where any may be named.
        restricted: whether visitors load nothing but what is offered, or is on the machine that runs models.
        folders: whose models may be loaded, besides those on the Hub.
    """

    names: tuple[str, ...]
    restricted: bool
    folders: tuple[Path, ...]


def hub_offer() -> HubOffer:
    """As the settings say."""
    allowed = settings()
    return HubOffer(allowed.models, allowed.restricted, allowed.model_folders)


def local_model_names(_no_model: None) -> tuple[str, ...]:
    """Query: the names of models that a machine can load without a network, ours first."""
    found = local_models(settings().model_folders)
    ours = sorted((model.name for model in found if model.path.parent == SHIPPED_FOLDER), key=_OPENED.__ne__)
    return tuple(dict.fromkeys((*ours, *shipped_names(), *(model.name for model in found))))


def local_model_kinds(_no_model: None) -> dict[str, str]:
    """Query: the kind of each model that a machine can load without a network, by name, as its config says."""
    import_transformers()
    from transformers import AutoConfig

    found = {}
    for model in local_models(settings().model_folders):
        with contextlib.suppress(Exception):  # no kind takes it, or its config is broken
            found[model.name] = recognise(AutoConfig.from_pretrained(model.path, **SAFE), model.name).kind.name
    return found | shipped_kinds()


def reads_of_kind(kind: str) -> str:
    """Return what goes into models of a kind: "text", "pictures", "both" or "sound"."""
    return kind_named(kind).reads


def linked_vision_model(name: str, local: Collection[str]) -> HubVisionSpec:
    """A vision model by its name. A link may open what is on the machine (`local`), and never starts a download.

    Raises:
        HubError: if it is not there, or not offered.
    """
    offered = hub_offer().names
    if offered and name not in offered:
        raise HubError("{name} is not among the models that are offered here.", name=name[:80])
    if name not in local:
        raise HubError("{name} is not on this machine. Load it in the model lab first.", name=name[:80])
    return HubVisionSpec(HubModelSpec(name, offline=True))
