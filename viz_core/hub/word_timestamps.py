"""Time of each word, from the heads of a speech model that align with the sound."""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from viz_core.hub.kinds.speech import Speech
from viz_core.hub.model import HubModel
from viz_core.hub.runs.run import HubRun
from viz_core.hub.runs.sound_input import Head, SoundFeatures
from viz_core.hub.runs.token_text import Token
from viz_core.maps.alignments import token_starts

# Scripts that put no blanks between words: there each character is one, as transformers and openai/whisper have it.
_UNSPACED = ("CJK", "HIRAGANA", "KATAKANA", "THAI", "LAO", "MYANMAR")
_GOES_ON = re.compile(r" ([2-9]|\d\d+)/\d+")  # at the end of a label: a later part of a character


@dataclass(frozen=True)
class TimedWord:
    """A written word with its time in the sound.

    Attributes:
        text: the word with the signs that belong to it.
        start, end: in seconds from the beginning of the sound.
        steps: the first step that writes a token of it, and the one after the last: rows of cross-attention.
    """

    text: str
    start: float
    end: float
    steps: tuple[int, int]


def word_times(model: HubModel, run: HubRun, heads: Sequence[Head] = ()) -> tuple[TimedWord, ...]:
    """The words of a run in order, each from the moment at which the step that writes it begins to the next word's.

    Rows of cross-attention are those of the words and of the end, columns those that are sound; dynamic time warping
    through their mean over heads gives each step the moment at which it begins (`viz_core.maps.alignments`).

    Args:
        heads: layer and head of cross-attention, from 0; those that the model names unless given.
    """
    sound = _sound_features(run)
    first = sound.num_prompt_tokens - 1  # the step that writes the first word has read the last of the prompt
    written = run.target_tokens[first:]
    count = len(written) - (run.complete and bool(written))  # the end is not a word
    if not count:
        return ()
    weights = torch.stack([sound_weights(run, head, slice(first, None)) for head in heads or sound.aligning])
    engine = model.engine
    if not isinstance(engine, Speech):
        raise ValueError(f"model: expected a speech model, got {model.card.name}")
    width = int(engine.model.config.median_filter_width)
    times = [*token_starts(weights, width).tolist(), sound.num_keys]
    words = []
    for begin, end in _word_spans(written[:count]):
        text = engine.tokenizer.decode([token.id for token in written[begin:end]]).strip()
        start, stop = (round(times[step] * sound.key_seconds, 3) for step in (begin, end))
        words.append(TimedWord(text, start, stop, (first + begin, first + end)))
    return tuple(word for word in words if word.text)  # blanks and punctuation have no sound


def _sound_features(run: HubRun) -> SoundFeatures:
    if run.sound is None:
        raise ValueError("run: expected one of a speech model, which heard a sound")
    return run.sound


def sound_weights(run: HubRun, head: Head, steps: slice) -> Float[Tensor, "steps keys"]:
    """Rows of one head's cross-attention, of the moments that are sound; each still a share of all moments."""
    layer, number = head
    calls = {call.layer: call for call in run.trace if call.kind == "cross"}
    if layer not in calls or not 0 <= number < calls[layer].num_heads:
        raise ValueError(f"heads: expected a layer and head that there are, got {head}")
    return calls[layer].weights(head=number, queries=steps, keys=slice(_sound_features(run).num_keys))[0]


def _word_spans(tokens: Sequence[Token]) -> list[tuple[int, int]]:
    """Where each word begins and ends among tokens."""
    starts = [i for i, token in enumerate(tokens) if i == 0 or _starts(token) or tokens[i - 1].special]
    return list(zip(starts, [*starts[1:], len(tokens)], strict=True))


def _starts(token: Token) -> bool:
    if _GOES_ON.search(token.label) and token.label != token.text:
        return False
    unspaced = unicodedata.name(token.text[:1] or " ", "").startswith(_UNSPACED)
    return token.starts_word or token.special or unspaced
