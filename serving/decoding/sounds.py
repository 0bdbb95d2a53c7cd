"""Visitors' sounds, decoded in limited processes."""

from __future__ import annotations

import numpy as np

from serving.decoding import child
from serving.decoding.process import CPU_SECONDS, decode
from serving.settings import settings
from viz_core.sounds.open_sound import SoundError
from viz_core.sounds.sound import RATE, Sound

_SAMPLE = 4  # bytes


def decode_sound(content: bytes) -> Sound:
    """Return a visitor's sound.

    Raises:
        SoundError: if it is refused, or exceeds a limit of the process; the message is for the visitor.
        BusyError: if too many files are being decoded.
    """
    allowed = settings().sound_limits
    too_long = SoundError(
        "This sound takes more than {seconds} s to decode, or too much memory. Save it again as WAV.",
        seconds=CPU_SECONDS,
    )
    output = int((allowed[1] + 1) * RATE * _SAMPLE)
    return Sound(np.frombuffer(decode(child.sound, content, allowed, output, too_long), dtype=np.float32))
