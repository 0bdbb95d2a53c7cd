"""Sounds in requests."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field

from serving.requests.request import MOST_CARRIED, PayloadMissingError
from viz_core.sounds.sound import Sound
from viz_core.view.notebook_file import RunSource

TONES = "sample tones"
"""The digest of the drawn sound."""


@dataclass(frozen=True)
class SoundInput:
    """A sound, identified by its digest."""

    digest: str
    sound: Sound | None = field(compare=False, repr=False)

    @property
    def without_payload(self) -> SoundInput:
        """The digest alone, which is equal to the sound."""
        return SoundInput(self.digest, None)

    def open(self) -> Sound:
        """Return the sound.

        Raises:
            PayloadMissingError: if only its digest is here.
        """
        if self.sound is None:
            raise PayloadMissingError(self.digest)
        return self.sound

    def run_source(self) -> RunSource:
        """Return code that opens the sound as `sound`; short sounds are embedded in the code.

        Raises:
            PayloadMissingError: if only its digest is here.
        """
        if self.digest == TONES:
            return RunSource("from viz_core.sounds.tones import tone_sequence\n\nsound = tone_sequence()")
        opening = "from viz_core.sounds.open_sound import open_sound\n\n"
        file = self.open().wav()
        if len(file) > MOST_CARRIED:
            read = "from pathlib import Path\n\n" + opening + "sound = open_sound(Path('sound.wav').read_bytes())"
            return RunSource(read, ("sound",))
        written = base64.b64encode(file).decode("ascii")
        return RunSource(f"from base64 import b64decode\n\n{opening}sound = open_sound(b64decode('{written}'))")
