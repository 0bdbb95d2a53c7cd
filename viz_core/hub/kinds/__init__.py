"""The register of kinds of models: one module a kind, found here by being a module of this package.

A kind is a class that derives from `ModelKind`; that file and its words in assets/text (kind.NAME and those that its
controls name) are all that a new kind needs.

>>> kind_named("decoder").writes()
True
"""

from typing import Any, NamedTuple

from viz_core.hub.kinds.base import ConfigFacts, Head, InputControl, ModelKind
from viz_core.hub.store import HubError
from viz_core.runtime.registry import find_classes

__all__ = ["KINDS", "Head", "InputControl", "ModelKind", "RecognisedKind", "kind_named", "recognise"]

KINDS = {kind.name: kind for kind in find_classes(__name__, ModelKind)}  # type: ignore[type-abstract]
"""Every kind by its name, in the order in which they are tried."""


class RecognisedKind(NamedTuple):
    """The kind of a config."""

    kind: type[ModelKind]  # the class that runs its models
    auto_class: Any  # the class of transformers whose `from_pretrained` loads them
    head: Head


def kind_named(name: str) -> type[ModelKind]:
    """The registered kind of this name."""
    if name not in KINDS:
        raise ValueError(f"name: expected one of {', '.join(KINDS)}, got {name!r}")
    return KINDS[name]


def recognise(config: Any, name: str, architecture: str | None = None) -> RecognisedKind:
    """The kind of model that a transformers config describes; the architecture is the first it names unless given."""
    import transformers

    facts = ConfigFacts(config, name, architecture or (getattr(config, "architectures", None) or [""])[0])
    for kind in KINDS.values():
        if (kind.stack is None) != facts.is_encoder_decoder:
            continue
        found = kind.recognise(facts)
        if found is not None:
            auto_class, head = found
            return RecognisedKind(kind, getattr(transformers, auto_class), head)
    raise _refusal(facts)


def _refusal(facts: ConfigFacts) -> HubError:
    """Why no kind takes a config."""
    values = {"name": facts.name, "kind": facts.model_type}
    if not facts.is_encoder_decoder and facts.has_vision_config:
        if facts.architecture.endswith("ForImageClassification"):
            return HubError(
                "{name} classifies pictures with the vision model of a {kind}: save that model alone to examine it.",
                **values,
            )
        known = tuple(model_type for kind in KINDS.values() for model_type in kind.picture_text_types)
        return HubError(
            "{name} ({kind}) takes a picture and a text together in a way that the lab does not know. Those "
            "it knows are {known}.",
            known=known,
            **values,
        )
    if not facts.is_encoder_decoder and facts.has_model_for("image-classification"):
        return HubError("{name} ({kind}) has no attention over patches: there is nothing to look at here.", **values)
    return HubError(
        "{name} is a model of the kind “{kind}”, which takes neither a text nor a picture by itself, nor "
        "a sound as Whisper does. Choose an encoder, a decoder, an encoder-decoder, a vision model or "
        "Whisper.",
        **values,
    )
