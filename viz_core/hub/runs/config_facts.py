"""What kinds need to know of a transformers config to recognise it."""

from dataclasses import dataclass
from typing import Any

from viz_core.hub.transformers_internals.model_types import has_model_for


@dataclass(frozen=True)
class ConfigFacts:
    """A config, with what transformers can do with its model type."""

    config: Any
    name: str  # of the model, for messages
    model_type: str
    architecture: str  # class of the model, like "BertForMaskedLM"; "" where the config names none
    is_encoder_decoder: bool
    translates: bool
    generates: bool  # transformers has a causal language model of this type
    fills_masks: bool  # transformers has a masked language model of this type
    reads_text: bool  # fills masks or classifies texts
    classifies_images: bool  # transformers has an image classifier of this type
    has_base_model: bool

    @classmethod
    def of(cls, config: Any, name: str, architecture: str | None = None) -> "ConfigFacts":
        """Look a config up in transformers' tables of automatic classes."""
        kind = config.model_type
        fills_masks = has_model_for("masked-lm", kind)
        return cls(
            config,
            name,
            kind,
            architecture or (getattr(config, "architectures", None) or [""])[0],
            bool(getattr(config, "is_encoder_decoder", False)),
            translates=has_model_for("seq2seq-lm", kind),
            generates=has_model_for("causal-lm", kind),
            fills_masks=fills_masks,
            reads_text=fills_masks or has_model_for("text-classification", kind),
            classifies_images=has_model_for("image-classification", kind),
            has_base_model=has_model_for("base", kind),
        )

    @property
    def has_vision_config(self) -> bool:
        """Whether a vision tower stands within the model."""
        return hasattr(self.config, "vision_config")
