"""What a model of the hub is run on."""

from dataclasses import dataclass
from typing import TypedDict

from PIL import Image

from viz_core.hub.runs.generation import GREEDY, Sampling
from viz_core.images.video import Video
from viz_core.sounds.sound import Sound

PAYLOADS = ("text", "text_pair", "target", "image", "video", "sound")
"""Fields of `RunInputs` that a kind of model takes or does not take (`ModelKind.takes`)."""


class RunOptions(TypedDict, total=False):
    """Keyword arguments of `HubModel.run`; `RunInputs` documents them."""

    text_pair: str | None
    target: str | None
    image: Image.Image | None
    video: Video | None
    sound: Sound | None
    max_new_tokens: int | None
    sampling: Sampling
    max_tokens: int | None
    max_seconds: float | None
    language: str | None
    task: str | None


@dataclass(frozen=True, eq=False)
class RunInputs:
    """Inputs and limits of one run.

    Attributes:
        text: what an encoder reads, a decoder continues, or an encoder-decoder translates.
        text_pair: a second text, for encoders.
        target: what the model writes, instead of what it would: a continuation, a translation, the words of a sound.
        image: a picture of any mode and size, for vision models, dual encoders and vision-language models; the latter
            put it where the text says "<image>", or before the text.
        video: instead of a picture, for vision-language models that were trained on videos, in the same place.
        sound: for speech models (`viz_core.sounds.open_sound.open_sound`).
        max_new_tokens: most tokens it writes; the default of its kind unless given. 0 lets a decoder only read.
        sampling: how it chooses tokens.
        max_tokens: the most tokens a host allows a text to have, with what a decoder writes.
        max_seconds: time limit for writing.
        language: spoken in the sound, of `card.languages`; detected by the model unless given.
        task: of `card.tasks`: "transcribe", or "translate" into English.
    """

    text: str | None = None
    text_pair: str | None = None
    target: str | None = None
    image: Image.Image | None = None
    video: Video | None = None
    sound: Sound | None = None
    max_new_tokens: int | None = None
    sampling: Sampling = GREEDY
    max_tokens: int | None = None
    max_seconds: float | None = None
    language: str | None = None
    task: str | None = None

    def __post_init__(self) -> None:
        if self.max_new_tokens is not None and self.max_new_tokens < 0:
            raise ValueError(f"max_new_tokens: expected 0 or more, got {self.max_new_tokens}")

    @property
    def payloads(self) -> frozenset[str]:
        """Names of the texts, pictures and sounds that are given."""
        return frozenset(name for name in PAYLOADS if getattr(self, name) is not None)

    @property
    def budget(self) -> int:
        """Most tokens to write, once `max_new_tokens` is set."""
        return self.max_new_tokens or 0
