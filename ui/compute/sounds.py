"""Sounds for speech models."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

from serving.decoding.sounds import decode_sound
from serving.requests.sound import TONES, SoundInput
from ui.compute.slots import cached
from viz_core.sounds.open_sound import SoundError
from viz_core.sounds.sound import Sound
from viz_core.sounds.tones import tone_sequence


def sample_sound() -> SoundInput:
    """Return the tones that ship with the project."""
    return SoundInput(TONES, tone_sequence())


def read_sound(content: bytes) -> SoundInput:
    """Read a visitor's sound file within the limits of this server.

    Raises:
        SoundError: if it cannot be decoded or is too long; the message is for the visitor.
    """
    digest = hashlib.sha256(content).hexdigest()
    found = _decoded(SoundFile(digest, content))
    if isinstance(found, SoundError):
        raise found
    return SoundInput(digest, found)


@dataclass(frozen=True)
class SoundFile:
    """A sound file, identified by its digest."""

    digest: str
    content: bytes | None = field(compare=False, repr=False)

    @property
    def without_payload(self) -> SoundFile:
        """The digest alone, which is equal to the file."""
        return SoundFile(self.digest, None)


@cached()
def _decoded(file: SoundFile) -> Sound | SoundError:
    """The sound, or why there is none: what cannot be decoded is not tried again in every run of a page."""
    assert file.content is not None
    try:
        return decode_sound(file.content)
    except SoundError as error:
        return error
