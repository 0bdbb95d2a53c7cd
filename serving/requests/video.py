"""Videos in requests."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field

from serving.decoding.videos import decode_video
from serving.requests.request import MOST_CARRIED, PayloadMissingError
from viz_core.images.video import Video
from viz_core.view.notebook_file import RunSource


@dataclass(frozen=True)
class VideoInput:
    """A video, identified by its digest: an animation, or several pictures as frames."""

    digest: str
    files: tuple[bytes, ...] | None = field(compare=False, repr=False)

    @property
    def without_payload(self) -> VideoInput:
        """The digest alone, which is equal to the video."""
        return VideoInput(self.digest, None)

    def open(self) -> Video:
        """Return the video.

        Raises:
            PayloadMissingError: if only its digest is here.
            PictureError: if it cannot be decoded.
        """
        return decode_video(self._files())

    def run_source(self) -> RunSource:
        """Return code that opens the video as `video`; short ones are embedded in the code.

        Raises:
            PayloadMissingError: if only its digest is here.
        """
        opening, files = "from viz_core.images.video import open_video\n\n", self._files()
        if sum(map(len, files)) > MOST_CARRIED:
            opening = "from pathlib import Path\n\nfrom viz_core.images.video import open_video, order_of_names\n\n"
            read = (
                "paths = sorted(Path('video').iterdir(), key=lambda path: order_of_names(path.name))\n"
                "video = open_video([path.read_bytes() for path in paths])"
            )
            return RunSource(f"{opening}{read}", ("video",))
        written = ", ".join(f"b64decode('{base64.b64encode(file).decode('ascii')}')" for file in files)
        return RunSource(f"from base64 import b64decode\n\n{opening}video = open_video([{written}])")

    def _files(self) -> tuple[bytes, ...]:
        if self.files is None:
            raise PayloadMissingError(self.digest)
        return self.files
