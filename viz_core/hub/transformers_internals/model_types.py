"""The model types for which transformers has a class for a task."""

from typing import Literal

Task = Literal["base", "causal-lm", "masked-lm", "seq2seq-lm", "text-classification", "image-classification"]

TABLES: dict[Task, str] = {
    "base": "MODEL_MAPPING_NAMES",
    "causal-lm": "MODEL_FOR_CAUSAL_LM_MAPPING_NAMES",
    "masked-lm": "MODEL_FOR_MASKED_LM_MAPPING_NAMES",
    "seq2seq-lm": "MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES",
    "text-classification": "MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES",
    "image-classification": "MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES",
}
"""Where `transformers.models.auto.modeling_auto` has them."""


def has_model_for(task: Task, model_type: str) -> bool:
    """Whether transformers has a model of this type for a task."""
    from transformers.models.auto import modeling_auto

    return model_type in getattr(modeling_auto, TABLES[task])
