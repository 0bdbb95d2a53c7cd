"""Which kind of model a config describes, and the class of transformers that runs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from viz_core.hub.errors import HubError
from viz_core.hub.layouts import LAYOUTS

Kind = Literal["encoder", "decoder", "encoder-decoder", "vision", "vision-language", "dual-encoder", "speech"]

TWO_TOWERS = ("clip", "siglip")
"""Families that compare a picture with a text, each read by a tower of its own."""

_TOWERS = ("clip_vision_model", "siglip_vision_model")  # eyes of others, which also stand alone


@dataclass(frozen=True)
class Family:
    """How to load and run models of a config.

    Attributes:
        kind: what goes in and what comes out.
        auto_class: the class of transformers whose `from_pretrained` loads it.
        head: "labels" where the model sorts its input into classes, "words" where it writes, "mask" where an encoder
            fills in words that are masked, "" else.
    """

    kind: Kind
    auto_class: Any
    head: Literal["labels", "words", "mask", ""]

    @property
    def stack(self) -> str | None:
        """What the sites of its one stack, or the one beside a vision tower, begin with; None where there are two."""
        if self.kind in ("encoder-decoder", "speech"):
            return None
        return "decoder" if self.kind in ("decoder", "vision-language") else "encoder"


def family_of(config: Any, name: str, architecture: str | None = None) -> Family:
    """The family of a transformers config.

    Args:
        name: for messages.
        architecture: the class of the model, where there is one; the first that the config names unless given.

    Raises:
        HubError: if it is of none that take a text, a picture, both, or a sound: video, other inputs at once.
    """
    import transformers
    from transformers.models.auto import modeling_auto as auto

    model_type = config.model_type
    architecture = architecture or (getattr(config, "architectures", None) or [""])[0]
    writes = model_type in auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    fills = model_type in auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    reads = fills or model_type in auto.MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING_NAMES

    if getattr(config, "is_encoder_decoder", False):
        if model_type in auto.MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES:
            return Family("encoder-decoder", transformers.AutoModelForSeq2SeqLM, "words")
        if model_type == "whisper":
            return Family("speech", transformers.AutoModelForSpeechSeq2Seq, "words")
    elif model_type in _TOWERS:
        return Family("vision", transformers.AutoModel, "")
    elif hasattr(config, "patch_size") and model_type in auto.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES:
        if hasattr(config, "depths") and hasattr(config, "num_heads"):  # stages of attention, as in Swin
            raise HubError(
                "{name} windows or joins its patches from layer to layer: there is no one grid to show.", name=name
            )
        if "ForImageClassification" in architecture:
            return Family("vision", transformers.AutoModelForImageClassification, "labels")
        return Family("vision", transformers.AutoModel, "")
    elif writes and (not fills or architecture.endswith(("CausalLM", "LMHeadModel"))):
        return Family("decoder", transformers.AutoModelForCausalLM, "words")
    elif reads and "ForSequenceClassification" in architecture:
        return Family("encoder", transformers.AutoModelForSequenceClassification, "labels")
    elif fills and architecture.endswith("ForMaskedLM"):
        return Family("encoder", transformers.AutoModelForMaskedLM, "mask")
    elif reads and model_type in auto.MODEL_MAPPING_NAMES:
        return Family("encoder", transformers.AutoModel, "")
    elif hasattr(config, "vision_config"):
        own_sizes = getattr(config.vision_config, "model_type", "") == "pixtral"  # of pictures, in a LLaVA's clothes
        if model_type in LAYOUTS and not own_sizes:
            return Family("vision-language", transformers.AutoModelForImageTextToText, "words")
        if architecture.endswith("ForImageClassification"):
            raise HubError(
                "{name} sorts pictures on the eyes of a {kind}: save its vision model by itself to look at it.",
                name=name,
                kind=model_type,
            )
        if model_type in TWO_TOWERS:
            return Family("dual-encoder", transformers.AutoModel, "")
        raise HubError(
            "{name} ({kind}) takes a picture and a text together in a way that the lab does not know. Those "
            "it knows are {known}.",
            name=name,
            kind=model_type,
            known=(*LAYOUTS, *TWO_TOWERS),
        )
    elif model_type in auto.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES:
        raise HubError(
            "{name} ({kind}) has no attention over patches: there is nothing to look at here.",
            name=name,
            kind=model_type,
        )
    raise HubError(
        "{name} is a model of the kind “{kind}”, which takes neither a text nor a picture by itself, nor "
        "a sound as Whisper does. Choose an encoder, a decoder, an encoder-decoder, a vision model or "
        "Whisper.",
        name=name,
        kind=model_type,
    )
