"""Sounds for speech models."""

from __future__ import annotations

import hashlib

from serving.requests.sound import TONES, SoundInput
from serving.settings import settings
from viz_core.sounds.open_sound import open_sound
from viz_core.sounds.tones import tone_sequence


def sample_sound() -> SoundInput:
    """Return the tones that ship with the project."""
    return SoundInput(TONES, tone_sequence())


def read_sound(content: bytes) -> SoundInput:
    """Read a sound file within the limits of this server.

    Raises:
        SoundError: if it cannot be read or is too long; the message is for the visitor.
    """
    return SoundInput(hashlib.sha256(content).hexdigest(), open_sound(content, *settings().sound_limits))
