"""The shipped models: list them, load them, translate and classify with them.

What needs torch is imported when it is first used: a list of what there is needs none.
"""

from typing import TYPE_CHECKING

from viz_core.pretrained.shipped import CHECKPOINTS, CheckpointError, ModelCard, available, read_card
from viz_core.runtime.registry import lazy_names

if TYPE_CHECKING:
    from viz_core.pretrained.checkpoint import load_weights
    from viz_core.pretrained.classifier import Classification, ImageClassifier, build_classification_model
    from viz_core.pretrained.loading import load, load_classifier, load_translator
    from viz_core.pretrained.translation import Translation
    from viz_core.pretrained.translator import (
        MAX_CHARACTERS,
        MAX_NEW_TOKENS,
        MAX_SOURCE_TOKENS,
        TextError,
        Translator,
        build_translation_model,
    )

__all__ = [
    "CHECKPOINTS",
    "MAX_CHARACTERS",
    "MAX_NEW_TOKENS",
    "MAX_SOURCE_TOKENS",
    "CheckpointError",
    "Classification",
    "ImageClassifier",
    "ModelCard",
    "TextError",
    "Translation",
    "Translator",
    "available",
    "build_classification_model",
    "build_translation_model",
    "load",
    "load_classifier",
    "load_translator",
    "load_weights",
    "read_card",
]

_MODULES = {
    **dict.fromkeys(("Classification", "ImageClassifier", "build_classification_model"), f"{__name__}.classifier"),
    **dict.fromkeys(("MAX_CHARACTERS", "MAX_NEW_TOKENS", "MAX_SOURCE_TOKENS"), f"{__name__}.translator"),
    **dict.fromkeys(("TextError", "Translator", "build_translation_model"), f"{__name__}.translator"),
    "Translation": f"{__name__}.translation",
    **dict.fromkeys(("load", "load_classifier", "load_translator"), f"{__name__}.loading"),
    "load_weights": f"{__name__}.checkpoint",
}

__getattr__, __dir__ = lazy_names(__name__, _MODULES)
