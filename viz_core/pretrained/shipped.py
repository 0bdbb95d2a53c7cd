"""The models that ship: their cards, from the files beside the weights."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from viz_core.runtime.assets import ASSETS
from viz_core.runtime.refusal import RefusalError


class CheckpointError(RefusalError, ValueError):
    """A checkpoint that is missing, truncated or of the wrong shape; the message says which and what to do."""


@dataclass(frozen=True)
class ModelCard:
    """A shipped model's config.json, card.md and training.json."""

    name: str
    title: str
    task: str  # "translation" or "classification"
    config: dict[str, Any] = field(repr=False)
    scores: dict[str, float]
    licence: str
    text: str = field(repr=False)  # the whole card, Markdown
    training: dict[str, Any] = field(repr=False)  # curves, scores by length, time and device, as training wrote them

    @property
    def revision(self) -> str:
        """First characters of the weights' checksum; "" where none was published."""
        return str(self.config.get("sha256", ""))[:12]


def read_card(folder: Path) -> ModelCard:
    """The card of the model in `folder`.

    Raises:
        CheckpointError: if config.json is missing or does not hold what a card needs, or a file is damaged.
    """
    path = folder / "config.json"
    with parsing(path):
        config = _parsed(path, json.loads)
        card, record = folder / "card.md", folder / "training.json"
        text = _parsed(card, str) if card.is_file() else ""
        training = _parsed(record, json.loads) if record.is_file() else {}
        return ModelCard(
            folder.name,
            config["title"],
            config["task"],
            config,
            config.get("scores", {}),
            config["licence"],
            text,
            training,
        )


@contextmanager
def parsing(path: Path) -> Iterator[None]:
    """Turn errors while a model's file is parsed into a CheckpointError that names the file."""
    try:
        yield
    except CheckpointError:
        raise
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(
            "{file} of model {model!r} cannot be read: {detail}",
            file=path.name,
            model=path.parent.name,
            detail=repr(error),
        ) from None


def _parsed(path: Path, parse: Callable[[str], Any]) -> Any:
    content = read_bytes(path)
    try:
        return parse(content.decode())
    except ValueError:
        raise CheckpointError(
            "{file} of model {model!r} cannot be read: it may be cut short or altered. Fetch it again.",
            file=path.name,
            model=path.parent.name,
        ) from None


def read_bytes(path: Path) -> bytes:
    """Return the content of a model's file. CheckpointError if it is not there or cannot be read."""
    try:
        return path.read_bytes()
    except OSError:
        raise CheckpointError(
            "The model {model!r} lacks its file {file}.", model=path.parent.name, file=path.name
        ) from None


CHECKPOINTS = ASSETS / "checkpoints"


def available(folder: Path | None = None, task: str | None = None) -> tuple[ModelCard, ...]:
    """Return the cards of the models that ship, by name, without those whose config.json cannot be read.

    Args:
        folder: the folder of the checkpoints; the project's own unless given.
        task: "translation" or "classification", for the models of one task only.
    """
    cards = []
    for path in sorted((folder or CHECKPOINTS).glob("*/config.json")):
        try:
            cards.append(read_card(path.parent))
        except CheckpointError:
            continue
    return tuple(card for card in cards if task in (None, card.task))
