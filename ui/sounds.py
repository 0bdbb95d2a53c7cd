"""Sounds that speech models hear."""

from __future__ import annotations

import hashlib

from asking.sounds import TONES, GivenSound
from hosting.settings import settings
from viz_core.sounds.drawn import tone_sequence
from viz_core.sounds.opening import open_sound


def drawn_sound() -> GivenSound:
    """The tones that this project drew."""
    return GivenSound(TONES, tone_sequence())


def read_sound(content: bytes) -> GivenSound:
    """The sound in a file, within this host's limits.

    Raises:
        SoundError: if it cannot be read or is too long; the message is for a person.
    """
    return GivenSound(hashlib.sha256(content).hexdigest(), open_sound(content, *settings().sound_limits))
