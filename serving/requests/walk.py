"""Walks through the shipped models, in the form that a runner calls."""

from __future__ import annotations

from serving.models.model_spec import ShippedClassifier, ShippedTranslator
from serving.requests.hub import OwnModelSpec
from serving.requests.request import Picture
from serving.walk.steps import Edits, Walk
from serving.walk.walks import walk_picture, walk_writing
from viz_core.hub import HubModel, Sampling
from viz_core.pretrained import ImageClassifier

WRITER = OwnModelSpec("writer-en", offline=True)
TRANSLATOR = ShippedTranslator("transformer-en-fr")
CLASSIFIER = ShippedClassifier("vit-fashion-mnist")
_NEW_TOKENS = 4


def write(model: HubModel, text: str, temperature: float, top_k: int, edits: Edits) -> Walk:
    """Return the walk through a few words that continue a text; see `walk_writing`."""
    return walk_writing(model, text, _NEW_TOKENS, Sampling(temperature=temperature, top_k=top_k), edits)


def classify(model: ImageClassifier, picture: Picture, edits: Edits) -> Walk:
    """Return the walk through a picture; see `walk_picture`."""
    return walk_picture(model, picture.open(), edits)
