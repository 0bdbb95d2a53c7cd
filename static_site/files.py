"""The files of a site, their digests, and the service worker that knows them."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from dataclasses import dataclass, field
from pathlib import Path

from ui.text.words import languages

LANGUAGES = languages()
WEB = Path(__file__).parent / "web"
LARGE = re.compile(r"^models/|^pictures/|\.gz$|^vendor/plotly")
"""Files that a browser keeps when a page loads them; the first page of a language that it visits keeps all others."""


@dataclass
class SiteFiles:
    """What is written so far, by path within the site."""

    folder: Path
    contents: dict[str, bytes] = field(default_factory=dict)

    def add(self, path: str, content: str | bytes) -> dict[str, object]:
        """Add a file, compressed if its name ends in .gz, since many hosts compress nothing.

        Returns:
            Its path, size and digest, as `loadFile` takes them.

        Raises:
            ValueError: if the path is taken by a file with another content.
        """
        data = content.encode() if isinstance(content, str) else content
        data = gzip.compress(data, 9, mtime=0) if path.endswith(".gz") else data
        if self.contents.get(path, data) != data:
            raise ValueError(f"path: {path} has other contents already")
        self.contents[path] = data
        return {"path": path, "bytes": len(data), "sha256": _digest(data)}

    def write(self) -> None:
        """Write all files, the service worker with their digests, and files.json, which lists them."""
        digests = {path: _digest(data) for path, data in sorted(self.contents.items())}
        small: dict[str, list[str]] = {}
        for path in digests:
            if not LARGE.search(path):
                folder = path.split("/")[0]
                small.setdefault(folder if folder in LANGUAGES else "", []).append(path)
        worker = (WEB / "service_worker.js").read_text(encoding="utf-8")
        known = f"self.FILES = {json.dumps(digests, indent=1)};\nself.SMALL = {json.dumps(small, indent=1)};\n"
        listed = {path: {"bytes": len(self.contents[path]), "sha256": digest} for path, digest in digests.items()}
        everything = self.contents | {
            "service_worker.js": (known + worker).encode(),
            "files.json": (json.dumps(listed, indent=1) + "\n").encode(),
        }
        for path, data in everything.items():
            file = self.folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)


def _digest(content: bytes) -> str:
    return base64.b64encode(hashlib.sha256(content).digest()).decode("ascii")
