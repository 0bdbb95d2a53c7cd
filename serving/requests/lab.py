"""The models that the lab offers, and scans of their heads within the limits of this server."""

import contextlib
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from serving.requests.hub import HubModelSpec, HubVisionSpec
from serving.settings import settings
from viz_core.hub import HubError, HubModel, local_models
from viz_core.hub.kinds import kind_named, recognise
from viz_core.hub.load import import_transformers
from viz_core.hub.runs.tokenizers import clean_text
from viz_core.hub.shipped import shipped_kinds, shipped_names
from viz_core.hub.store.files import SAFE, SHIPPED_FOLDER, check_config, read_json
from viz_core.lab.scan import read_heads, read_repeats
from viz_core.lab.scan_results import KindScan, Line, Scan
from viz_core.pretrained.samples import scan_inputs, scan_picture
from viz_core.runtime.hooks import may_end

__all__ = ["KindScan", "Scan", "ScanPlan", "lines_of", "plan_scan", "scan_part", "scan_repeats", "text_beside"]

_OPENED = "writer-en"
"""What the lab opens on: it is small, and says something of what a reader types."""


@dataclass(frozen=True)
class HubOffer:
    """What visitors of the lab may load."""

    names: tuple[str, ...]  # the only models; () where any may be named
    restricted: bool  # whether visitors load nothing but what is offered, or is on the machine that runs models
    folders: tuple[Path, ...]  # whose models may be loaded, besides those on the Hub


def hub_offer() -> HubOffer:
    """As the settings say."""
    allowed = settings()
    return HubOffer(allowed.models, allowed.restricted, allowed.model_folders)


def local_model_names(_no_model: None = None) -> tuple[str, ...]:
    """Return the names of models that this machine can load without a network, ours first."""
    found = local_models(settings().model_folders)
    ours = sorted((model.name for model in found if model.path.parent == SHIPPED_FOLDER), key=_OPENED.__ne__)
    return tuple(dict.fromkeys((*ours, *shipped_names(), *(model.name for model in found))))


def local_model_kinds(_no_model: None) -> dict[str, str]:
    """Query: the kind of each model that a machine can load without a network, by name, as its config says."""
    import_transformers()
    from transformers import AutoConfig

    found = {}
    for model in local_models(settings().model_folders):
        may_end()
        with contextlib.suppress(Exception):  # no kind takes it, or its config is broken
            check_config(read_json(model.path / "config.json", model.name), model.name)
            found[model.name] = recognise(AutoConfig.from_pretrained(model.path, **SAFE), model.name).kind.name
    return found | shipped_kinds()


def reads_of_kind(kind: str) -> str:
    """Return what goes into models of a kind: "text", "pictures", "both" or "sound"."""
    return kind_named(kind).input_label


def linked_vision_model(name: str, local: Collection[str]) -> HubVisionSpec:
    """A vision model by its name. A link may open what is on the machine (`local`), and never starts a download.

    HubError if it is not there, or not offered.
    """
    offered = hub_offer().names
    if offered and name not in offered:
        raise HubError("{name} is not among the models that are offered here.", name=name[:80])
    if name not in local:
        raise HubError("{name} is not on this machine. Load it in the model lab first.", name=name[:80])
    return HubVisionSpec(HubModelSpec(name, offline=True))


_MAX_WORTH = 12
# Parameters times passes in which a head is switched off; second: on a public server.
_PASSES = {False: 6e10, True: 6e9}


@dataclass(frozen=True)
class ScanPlan:
    """How a model is scanned."""

    head: str  # its output layer
    worth: int  # of so many first texts or pictures the worth of each head; 0 where that would take too long


def plan_scan(model: HubModel) -> ScanPlan:
    """Query: how a model is scanned on this machine."""
    card = model.card
    if model.engine.inputs >= {"image", "text"}:  # the loss would be that of patches, which no model predicts
        return ScanPlan(card.head, 0)
    heads = sum(card.num_layers.values()) * card.num_heads
    worth = min(_MAX_WORTH, int(_PASSES[settings().hosted] / max(1, heads * card.num_parameters)))
    return ScanPlan(card.head, worth if worth > 1 else 0)


def scan_part(model: HubModel, inputs: tuple[str, ...], worth: bool) -> list[Line]:
    """Query: what each text, or picture by its name, says of each head, with its worth or without."""
    given: list[Any] = [scan_picture(name) for name in inputs] if "image" in model.engine.inputs else list(inputs)
    if model.engine.inputs >= {"image", "text"}:
        allowed = settings()
        limits = {"max_new_tokens": 0, "max_tokens": allowed.max_tokens, "max_seconds": allowed.max_seconds}
        texts = [text_beside(name, model.card.prompt) for name in inputs]
        given = [{"image": image, "text": text, **limits} for image, text in zip(given, texts, strict=True)]
    return list(read_heads(model, given, worth=len(inputs) if worth else 0))


def text_beside(picture: str, prompt: str) -> str:
    """Return the text of the same set and number as a picture, in a model's prompt if it has one."""
    drawn = scan_inputs("broad", pictures=True)
    if picture in drawn:
        text = scan_inputs("broad")[drawn.index(picture)]
    else:
        text = scan_inputs("narrow")[int(picture.removeprefix("test-"))]
    return prompt.replace("{text}", text) if prompt else text


def scan_repeats(model: HubModel) -> list[Line]:
    """Query: induction on random tokens that repeat."""
    return read_repeats(model)


def lines_of(text: str, most: int) -> tuple[str, ...]:
    """Return the lines of a text without control characters, but the empty ones.

    HubError if it has more than `most` characters.
    """
    if len(text) > most:
        sentence = "This text has {count:,} characters; at most {most:,} are allowed here. Shorten it."
        raise HubError(sentence, count=len(text), most=most)
    return tuple(line for line in (clean_text(line).strip() for line in text.splitlines()) if line)
