"""What kinds need to know of a transformers config to recognise it."""

from dataclasses import dataclass
from typing import Any

from viz_core.hub.transformers_internals.model_types import Task, has_model_for


@dataclass(frozen=True)
class ConfigFacts:
    """A config, with what transformers can do with its model type."""

    config: Any
    name: str  # of the model, for messages
    architecture: str  # class of the model, like "BertForMaskedLM"; "" where the config names none

    @property
    def model_type(self) -> str:
        """The family, like "bert"."""
        return str(self.config.model_type)

    @property
    def is_encoder_decoder(self) -> bool:
        """Whether it has two stacks."""
        return bool(getattr(self.config, "is_encoder_decoder", False))

    @property
    def has_vision_config(self) -> bool:
        """Whether a vision tower stands within the model."""
        return hasattr(self.config, "vision_config")

    def has_model_for(self, *tasks: Task) -> bool:
        """Whether transformers has a model of this type for one of these tasks."""
        return any(has_model_for(task, self.config.model_type) for task in tasks)
