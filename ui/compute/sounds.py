"""Sounds that speech models hear."""

from __future__ import annotations

import hashlib

from serving.requests.sound import TONES, SoundInput
from serving.settings import settings
from viz_core.sounds.open_sound import open_sound
from viz_core.sounds.tones import tone_sequence


def sample_sound() -> SoundInput:
    """The tones that this project drew."""
    return SoundInput(TONES, tone_sequence())


def read_sound(content: bytes) -> SoundInput:
    """The sound in a file, within this host's limits.

    Raises:
        SoundError: if it cannot be read or is too long; the message is for a person.
    """
    return SoundInput(hashlib.sha256(content).hexdigest(), open_sound(content, *settings().sound_limits))
