"""Sound as input of a speech model: its spectrogram, languages and tasks, and the heads that align with it."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxtyping import Float
from torch import Tensor

from viz_core.hub.runs.token_text import Token
from viz_core.hub.store import HubError
from viz_core.hub.transformers_internals import feature_extractor_config
from viz_core.sounds.sound import RATE, Sound

Head = tuple[int, int]
"""Layer and head of a decoder's cross-attention, each from 0."""

_MAX = {"feature_size": 512, "n_fft": 2**13, "chunk_length": 120, "hop_length": 2**13, "sampling_rate": 2**18}
"""Of an extractor, whose tables grow with them."""

_TASKS = ("transcribe", "translate")
_LANGUAGE = re.compile(r"<\|([a-z]{2,3})\|>")


@dataclass(frozen=True, eq=False)
class SoundFeatures:
    """A sound as a speech model received it, padded with silence to the model's full length."""

    waveform: Sound  # the sound itself
    # log-mel energies as the model had them, low bands first, as far as the sound goes
    spectrogram: Float[Tensor, "bands frames"]
    frame_seconds: float  # how long a column of it stands for
    num_keys: int  # how many of the encoder's states are sound; those that follow stand for the silence after it
    key_seconds: float  # how long a state stands for
    num_prompt_tokens: int  # tokens the decoder was given (start, language, task) before the first that it wrote
    aligning: tuple[Head, ...]  # heads of cross-attention that follow the sound
    aligning_named: bool  # whether the model's generation config names them; else they are all of the last layers' half


@dataclass(frozen=True)
class SpectrogramInput:
    """A model's feature extractor."""

    extractor: Any  # of transformers
    frames_per_key: int  # columns of the spectrogram that the encoder makes one state of

    @property
    def max_seconds(self) -> float:
        """How long a sound may be."""
        return float(self.extractor.chunk_length)

    @property
    def frame_seconds(self) -> float:
        """How long a column of the spectrogram stands for."""
        return float(self.extractor.hop_length / self.extractor.sampling_rate)

    @property
    def key_seconds(self) -> float:
        """How long a state of the encoder stands for."""
        return self.frame_seconds * self.frames_per_key

    def encode(self, sound: Sound) -> tuple[Float[Tensor, "1 bands frames"], int]:
        """The log-mel spectrogram as the model takes it, and how many of its columns are sound."""
        if sound.seconds > self.max_seconds:
            raise HubError(
                "This sound lasts {seconds:.1f} s; the model hears at most {most:g} s at once. Cut out a part of it.",
                seconds=sound.seconds,
                most=self.max_seconds,
            )
        made = self.extractor(sound.samples, sampling_rate=RATE, return_tensors="pt", return_attention_mask=True)
        return made["input_features"], int(made["attention_mask"].sum())

    def tokens(self, num_keys: int) -> tuple[Token, ...]:
        """The encoder's states, named by the time at which each begins."""
        times = (f"{number * self.key_seconds:.2f} s" for number in range(num_keys))
        return tuple(Token(-1, time, time, starts_word=True) for time in times)


def load_sound_input(path: Path, config: Any, name: str) -> SpectrogramInput:
    """The feature extractor in a model's folder."""
    from transformers import WhisperFeatureExtractor

    try:
        settings = feature_extractor_config(path)
    except (OSError, ValueError):
        raise HubError("{name} lacks its preprocessor_config.json, which says how it hears.", name=name) from None
    for size, most in _MAX.items():
        number = settings.get(size, 1)
        if not isinstance(number, int) or not 0 < number <= most:
            raise HubError(
                "The preprocessor_config.json of {name} cannot be right: {field} is {number}.",
                name=name,
                field=size,
                number=str(number)[:40],
            )
    if (settings.get("sampling_rate", RATE), settings.get("feature_size", 80)) != (RATE, config.num_mel_bins):
        raise HubError("The preprocessor_config.json of {name} does not belong to the model.", name=name)
    extractor = WhisperFeatureExtractor.from_dict(settings)
    per_key, left = divmod(extractor.nb_max_frames, config.max_source_positions)
    if left or not per_key:
        raise HubError("The preprocessor_config.json of {name} does not belong to the model.", name=name)
    return SpectrogramInput(extractor, per_key)


def aligning_heads(named: Any, num_layers: int, num_heads: int) -> tuple[tuple[Head, ...], bool]:
    """The heads that follow the sound, and whether a generation config names them.

    Where it names none that there are: all heads of the later half of layers, as openai/whisper has it.
    """
    pairs = named if isinstance(named, list | tuple) else ()
    found = tuple(dict.fromkeys(_heads_in(pairs, num_layers, num_heads)))
    if found:
        return found, True
    return tuple((layer, head) for layer in range(num_layers // 2, num_layers) for head in range(num_heads)), False


def _heads_in(pairs: Iterable[Any], num_layers: int, num_heads: int) -> Iterable[Head]:
    for pair in pairs:
        match pair:
            case [int(layer), int(head)] if 0 <= layer < num_layers and 0 <= head < num_heads:
                yield layer, head


def languages_of(generation_config: Any, num_words: int) -> tuple[str, ...]:
    """Codes like "en", sorted; none for a model of one language."""
    named = _marks(generation_config, "lang_to_id", num_words)
    return tuple(sorted(found[1] for found in map(_LANGUAGE.fullmatch, named) if found))


def tasks_of(generation_config: Any, num_words: int) -> tuple[str, ...]:
    """Tasks that can be requested: "transcribe", and "translate" into English."""
    named = _marks(generation_config, "task_to_id", num_words)
    return tuple(task for task in _TASKS if task in named)


def _marks(generation_config: Any, table: str, num_words: int) -> tuple[str, ...]:
    """Names in a table of tokens, whose content is not trusted: a number beyond the model's words is no token of it."""
    named = getattr(generation_config, table, None)
    if getattr(generation_config, "is_multilingual", False) is not True or not isinstance(named, dict):
        return ()
    return tuple(
        name
        for name, number in named.items()
        if isinstance(name, str) and isinstance(number, int) and 0 <= number < num_words
    )
