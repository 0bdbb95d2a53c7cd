"""A sound as speech models take it: one channel, 16,000 samples a second."""

import io
import wave
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

RATE = 16_000
"""Samples a second."""


@dataclass(frozen=True, eq=False)
class Sound:
    """One channel at `RATE`, between -1 and 1.

    Raises:
        ValueError: if there is no sample, more than one channel, or a number that is none.
    """

    samples: Float[np.ndarray, "..."]

    def __post_init__(self) -> None:
        shape, kind = self.samples.shape, self.samples.dtype
        if len(shape) != 1 or not shape[0] or kind != np.float32:
            raise ValueError(f"samples: expected a row of float32, got {kind} of shape {shape}")
        if not np.isfinite(self.samples).all():
            raise ValueError("samples: expected finite numbers, got some that are none")

    def __repr__(self) -> str:
        """The duration."""
        return f"Sound({self.seconds:.2f} s)"

    @property
    def seconds(self) -> float:
        """Duration in seconds."""
        return len(self.samples) / RATE

    def part(self, start: float, end: float) -> "Sound":
        """Return the sound between two times in seconds; at least one sample."""
        first = min(max(0, round(start * RATE)), len(self.samples) - 1)
        return Sound(self.samples[first : max(first + 1, round(end * RATE))])

    def wav(self) -> bytes:
        """Return a 16-bit WAV file, without normalising the volume."""
        file = io.BytesIO()
        with wave.open(file, "wb") as writer:
            writer.setnchannels(1)
            writer.setsampwidth(2)
            writer.setframerate(RATE)
            writer.writeframes((self.samples.clip(-1, 1) * 32767).round().astype("<i2").tobytes())
        return file.getvalue()


TONES = (261.63, 329.63, 392.00, 440.00, 523.25)
"""C4, E4, G4, A4 and C5 in hertz, equal temperament on A4 = 440 Hz."""

TONE_SECONDS, PAUSE_SECONDS = 0.3, 0.2


def tone_sequence() -> Sound:
    """Return five rising tones, 0.3 s each, with 0.2 s of silence before, between and after them.

    Each is a sine with two weaker overtones, faded in and out over 20 ms so that nothing clicks.
    """
    time = np.arange(round(TONE_SECONDS * RATE)) / RATE
    fade = np.minimum(1, np.minimum(time, time[::-1]) / 0.02)
    silence = np.zeros(round(PAUSE_SECONDS * RATE))
    parts = [silence]
    for hertz in TONES:
        tone = sum(np.sin(2 * np.pi * k * hertz * time) / k**2 for k in (1, 2, 3))
        parts += [0.4 * fade * tone, silence]
    return Sound(np.concatenate(parts).astype(np.float32))
