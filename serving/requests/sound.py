"""A sound as it was brought: small where it is known already."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field

from serving.requests.request import MOST_CARRIED, PayloadMissingError
from viz_core.sounds.sound import Sound
from viz_core.view.notebook_file import Recipe

TONES = "sample tones"
"""The digest of the drawn sound."""


@dataclass(frozen=True)
class SoundInput:
    """Its digest tells it from others, and stands for it where it is known already."""

    digest: str
    sound: Sound | None = field(compare=False, repr=False)

    @property
    def without_payload(self) -> SoundInput:
        """The sound by its digest alone: equal to it, and small."""
        return SoundInput(self.digest, None)

    def open(self) -> Sound:
        """The sound itself.

        Raises:
            PayloadMissingError: if only its digest is here.
        """
        if self.sound is None:
            raise PayloadMissingError(self.digest)
        return self.sound

    def recipe(self) -> Recipe:
        """How a notebook opens it, as `sound`: from the notebook itself where it is short enough.

        Raises:
            PayloadMissingError: if only its digest is here.
        """
        if self.digest == TONES:
            return Recipe("from viz_core.sounds.tones import tone_sequence\n\nsound = tone_sequence()")
        opening = "from viz_core.sounds.open_sound import open_sound\n\n"
        file = self.open().wav()
        if len(file) > MOST_CARRIED:
            read = "from pathlib import Path\n\n" + opening + "sound = open_sound(Path('sound.wav').read_bytes())"
            return Recipe(read, ("sound",))
        written = base64.b64encode(file).decode("ascii")
        return Recipe(f"from base64 import b64decode\n\n{opening}sound = open_sound(b64decode('{written}'))")
