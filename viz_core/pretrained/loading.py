"""A model that ships, by its name."""

from collections.abc import Callable
from pathlib import Path
from typing import Literal, overload

import torch

from viz_core.pretrained import shipped
from viz_core.pretrained.classifier import ImageClassifier, read_classifier
from viz_core.pretrained.shipped import CheckpointError, ModelCard, read_card
from viz_core.pretrained.translator import Translator, read_translator
from viz_core.runtime.device import best_device, find_device

_READERS: dict[str, Callable[[ModelCard, Path, torch.device], Translator | ImageClassifier]] = {
    "translation": read_translator,
    "classification": read_classifier,
}


# For type checkers: `load("transformer-en-fr").translate` exists.
TranslatorName = Literal["bahdanau-en-fr", "seq2seq-en-fr", "transformer-en-fr"]
ClassifierName = Literal["vit-cifar10", "vit-fashion-mnist"]


@overload
def load(name: TranslatorName, device: torch.device | str | None = ..., folder: Path | None = ...) -> Translator: ...
@overload
def load(
    name: ClassifierName, device: torch.device | str | None = ..., folder: Path | None = ...
) -> ImageClassifier: ...
@overload
def load(
    name: str, device: torch.device | str | None = ..., folder: Path | None = ...
) -> Translator | ImageClassifier: ...
def load(
    name: str, device: torch.device | str | None = None, folder: Path | None = None
) -> Translator | ImageClassifier:
    """Load a shipped model in evaluation mode, float32, on `device` (the best there is unless given).

    Raises:
        CheckpointError: if there is no such model, or its files are missing, truncated, altered or of the wrong shape.
        ValueError: if the device is not on this machine.
    """
    folder = folder or shipped.CHECKPOINTS
    folders = {path.parent.name: path.parent for path in folder.glob("*/config.json")}
    if name not in folders:
        there = tuple(card.name for card in shipped.available(folder))
        if not there:
            raise CheckpointError("There is no model {name!r}; none ships.", name=name)
        raise CheckpointError("There is no model {name!r}; those that ship: {names}.", name=name, names=there)
    path = folders[name]  # one that is there: never a path made from what came in a link
    card = read_card(path)
    if card.task not in _READERS:
        raise CheckpointError("config.json of model {name!r} names no known task: {task!r}", name=name, task=card.task)
    where = best_device() if device is None else find_device(str(device))
    return _READERS[card.task](card, path, where)


def load_translator(name: str, device: torch.device | str | None = None, folder: Path | None = None) -> Translator:
    """`load` for a model that translates.

    Raises:
        CheckpointError: also if the model does something else.
    """
    model = load(name, device, folder)
    if not isinstance(model, Translator):
        raise CheckpointError(
            "The model {name!r} does not translate: its task is {task}.", name=name, task=model.card.task
        )
    return model


def load_classifier(name: str, device: torch.device | str | None = None, folder: Path | None = None) -> ImageClassifier:
    """`load` for a model that names what is on a picture.

    Raises:
        CheckpointError: also if the model does something else.
    """
    model = load(name, device, folder)
    if not isinstance(model, ImageClassifier):
        raise CheckpointError(
            "The model {name!r} does not classify pictures: its task is {task}.", name=name, task=model.card.task
        )
    return model
