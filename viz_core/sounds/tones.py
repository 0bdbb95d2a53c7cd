"""A synthetic sample sound."""

import numpy as np

from viz_core.sounds.sound import RATE, Sound

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
