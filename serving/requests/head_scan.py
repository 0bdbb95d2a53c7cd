"""Queries on the heads of a model: a scan of texts, pictures or both, part by part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from serving.settings import settings
from viz_core.hub import HubError, HubModel
from viz_core.hub.runs.tokenizers import clean_text
from viz_core.lab.scan import read_heads, read_repeats
from viz_core.lab.scan_results import KindScan, Line, Scan
from viz_core.pretrained.scan_inputs import scan_inputs, scan_picture

__all__ = ["KindScan", "Scan", "ScanPlan", "lines_of", "plan_scan", "scan_part", "scan_repeats", "text_beside"]

_MOST_WORTH = 12
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
    if model.engine.takes >= {"image", "text"}:  # the loss would be that of patches, which no model predicts
        return ScanPlan(card.head, 0)
    heads = sum(card.num_layers.values()) * card.num_heads
    worth = min(_MOST_WORTH, int(_PASSES[settings().hosted] / max(1, heads * card.num_parameters)))
    return ScanPlan(card.head, worth if worth > 1 else 0)


def scan_part(model: HubModel, inputs: tuple[str, ...], worth: bool) -> list[Line]:
    """Query: what each text, or picture by its name, says of each head, with its worth or without."""
    given: list[Any] = [scan_picture(name) for name in inputs] if "image" in model.engine.takes else list(inputs)
    if model.engine.takes >= {"image", "text"}:
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

    Raises:
        HubError: if it has more than `most` characters.
    """
    if len(text) > most:
        sentence = "This text has {count:,} characters; at most {most:,} are allowed here. Shorten it."
        raise HubError(sentence, count=len(text), most=most)
    return tuple(line for line in (clean_text(line).strip() for line in text.splitlines()) if line)
