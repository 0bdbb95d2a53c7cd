"""Sounds: an axis of seconds with spectrogram and wave, a place for each moment, and for each word at its time."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
import torch
from jaxtyping import Float
from PIL import Image

from viz_core.hub.runs.sound_input import SoundFeatures
from viz_core.hub.word_timestamps import TimedWord
from viz_core.lab.places import Box, Drawing, Panel, Place

_SECONDS = 2.0  # of a panel, unless there would be too many
_MOST_PANELS = 8
_WIDTH = 340  # px
_CELLS = 40  # moments that a panel tells apart
# Heights: of the spectrogram, the wave, two rows of words, of which each takes every second, and the axis.
_SPECTRUM, _WAVE, _WORD, _AXIS = 80, 36, 22, 20
_APART, _LETTER = 2, 7.5  # px between words in a row; of a letter
_HEIGHT = _SPECTRUM + _WAVE + 2 * _WORD + _AXIS


def moments(num_keys: int, seconds: float) -> list[int]:
    """Return where each moment that is told apart begins among the keys, and the end."""
    size = max(1, math.ceil(num_keys / (_CELLS * _num_panels(seconds))))
    return [*range(0, num_keys, size), num_keys]


def sum_moments(weights: Float[np.ndarray, "words keys"], seconds: float) -> Float[np.ndarray, "words moments"]:
    """Return the weight of each moment: the sum over its keys."""
    return np.add.reduceat(weights, moments(weights.shape[1], seconds)[:-1], axis=1)


def draw_sound(sound: SoundFeatures, words: Sequence[TimedWord], number: Callable[[str], str] = str) -> Drawing:
    """Return the axis of seconds in panels side by side, with its moments as keys and words as queries.

    Args:
        number: writes a number, like "0.25", as the reader's language does.
    """
    seconds = sound.num_keys * sound.key_seconds
    count = _num_panels(seconds)
    each = seconds / count
    panels = tuple(_draw_panel(sound, words, i * each, (i + 1) * each, number) for i in range(count))

    def boxes(start: float, end: float, top: float, height: float) -> tuple[Box, ...]:
        found = []
        for i in range(count):
            left, right = (min(max(t / each - i, 0), 1) * _WIDTH for t in (start, end))
            if right - left > 1e-6:
                found.append((i, left, top, right - left, height))
        return tuple(found)

    times = [edge * sound.key_seconds for edge in moments(sound.num_keys, seconds)]
    keys = [
        Place(f"{number(f'{a:.2f}')}–{number(f'{b:.2f}')} s", boxes(a, b, 0, _SPECTRUM + _WAVE))
        for a, b in pairwise(times)
    ]
    queries = [
        Place(f"“{word.text}”", boxes(word.start, word.end, _SPECTRUM + _WAVE + _WORD * (i % 2), _WORD), i)
        for i, word in enumerate(words)
    ]
    return Drawing(panels, (*keys, *queries), len(keys), tuple(word.text for word in words), relative=True)


def _num_panels(seconds: float) -> int:
    return min(_MOST_PANELS, max(1, math.ceil(seconds / _SECONDS)))


def _draw_panel(
    sound: SoundFeatures, words: Sequence[TimedWord], start: float, end: float, number: Callable[[str], str]
) -> Panel:
    """Spectrogram, wave, words that begin here, and the axis from one time to another."""
    scale = _WIDTH / (end - start)
    base = _HEIGHT - _AXIS
    samples = sound.waveform.part(start, end).samples
    loudest = float(np.abs(sound.waveform.samples).max()) or 1.0
    parts = np.array_split(samples, min(_WIDTH // 2, len(samples)))
    edges = [(x * _WIDTH / (len(parts) - 1 or 1), part.max(), part.min()) for x, part in enumerate(parts)]
    outline = [(x, peak, -0.02) for x, peak, _ in edges] + [(x, peak, 0.02) for x, _, peak in reversed(edges)]
    middle, high = _SPECTRUM + _WAVE / 2, 0.45 * _WAVE / loudest
    wave = "L".join(f"{x:.0f} {middle - high * float(peak) + around * _WAVE:.1f}" for x, peak, around in outline)
    strokes = [f"M{wave}Z", f"M0 {base}H{_WIDTH}"]
    step = next(step for step in (0.1, 0.2, 0.5, 1.0, 2.0, 5.0) if scale * step >= 48 or step == 5.0)
    labels: list[tuple[float, float, str, str]] = []
    for i in range(math.ceil(start / step - 1e-9), math.ceil(end / step - 1e-9)):
        x = (i * step - start) * scale
        strokes.append(f"M{x:.1f} {base}v5")
        labels.append((x + 3, base + 12, f"{number(f'{i * step:g}')} s", "start"))
    ends = [0.0, 0.0]  # of the labels in each row: one that has no room is in the text alone
    for i, word in enumerate(words):
        left, right = ((min(max(t, start), end) - start) * scale for t in (word.start, word.end))
        top = _SPECTRUM + _WAVE + _WORD * (i % 2)
        if right - left > _APART:
            strokes.append(f"M{left:.1f} {top + _WORD - 2}H{right - _APART:.1f}")
        if start <= word.start < end and left >= ends[i % 2]:
            labels.append((left + 1, top + _WORD / 2 - 1, word.text, "start"))
            ends[i % 2] = left + _LETTER * len(word.text)
    return Panel((0, 0, _WIDTH, _HEIGHT), " ".join(strokes), tuple(labels), _spectrum(sound, start, end), inked=True)


def _spectrum(sound: SoundFeatures, start: float, end: float) -> Image.Image:
    """The spectrogram between two times, high bands on top, bright where it is loud, with room beneath."""
    whole = sound.spectrogram
    first, last = (round(t / sound.frame_seconds) for t in (start, end))
    first = min(first, whole.shape[1] - 1)
    low, high = float(whole.min()), float(whole.max())
    part = (whole[:, first : max(last, first + 1)].flip(0) - low) / max(high - low, 1e-6)
    image = Image.fromarray((part * 255).round().to(torch.uint8).numpy()).resize((_WIDTH, _SPECTRUM))
    page = Image.new("L", (_WIDTH, _HEIGHT))
    page.paste(image, (0, 0))
    return page
