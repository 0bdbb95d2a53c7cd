"""The files of a site, their digests, the service worker that knows them, and onnxruntime-web from the npm registry."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import re
import tarfile
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

WEB = Path(__file__).parent / "web"
LARGE = re.compile(r"^models/|\.gz$")
"""Files that a browser keeps when a page loads them; it keeps all others at the first visit to any page."""


@dataclass
class SiteFiles:
    """What is written so far, by path within the site."""

    folder: Path
    contents: dict[str, bytes] = field(default_factory=dict)

    def add(self, path: str, content: str | bytes) -> dict[str, object]:
        """Add a file; its path, size and digest, as `loadFile` takes them.

        Raises:
            ValueError: if the path is taken by a file with another content.
        """
        data = content.encode() if isinstance(content, str) else content
        if self.contents.get(path, data) != data:
            raise ValueError(f"path: {path} has other contents already")
        self.contents[path] = data
        return {"path": path, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}

    def write(self) -> None:
        """Write all files, the service worker with their digests, and files.json, which lists them."""
        digests = {path: hashlib.sha256(data).hexdigest() for path, data in sorted(self.contents.items())}
        small = [path for path in digests if not LARGE.search(path)]
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


VERSION = "1.30.0"
SHA512 = "q0y+JrrtukXSzsBWEMccVfqX25LRmosXHF+CaRJmg8pZClzcV7svNc4rKY3jL02Vb7QmRMDs1SigqR4CXAfKYQ=="
"""The package's `dist.integrity` on the registry, of onnxruntime-web-1.30.0.tgz."""

REGISTRY = "https://registry.npmjs.org/"
SCRIPT = "ort.wasm.bundle.min.mjs"
PROGRAM = "ort-wasm-simd-threaded.wasm"

LICENCE = """MIT License

Copyright (c) Microsoft Corporation

Permission is hereby granted, free of charge, to any person obtaining a copy
of this software and associated documentation files (the "Software"), to deal
in the Software without restriction, including without limitation the rights
to use, copy, modify, merge, publish, distribute, sublicense, and/or sell
copies of the Software, and to permit persons to whom the Software is
furnished to do so, subject to the following conditions:

The above copyright notice and this permission notice shall be included in all
copies or substantial portions of the Software.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR
IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF MERCHANTABILITY,
FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE
AUTHORS OR COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER
LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE, ARISING FROM,
OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE
SOFTWARE.
"""
"""The package names its licence, MIT, without a copy; this is the one of its repository, microsoft/onnxruntime."""


def registry() -> str:
    """The registry that npm would use: npm_config_registry, then the user's .npmrc, then npm's own."""
    for name, value in os.environ.items():
        if name.lower() == "npm_config_registry" and value:
            return value.rstrip("/") + "/"
    settings = Path.home() / ".npmrc"
    if settings.is_file():
        found = re.search(r"^registry\s*=\s*(\S+)", settings.read_text(encoding="utf-8"), re.MULTILINE)
        if found:
            return found[1].rstrip("/") + "/"
    return REGISTRY


def download(cache: Path) -> dict[str, bytes]:
    """The script and the program of the package, which is kept in `cache` once it is downloaded.

    Raises:
        ValueError: if its digest is not the pinned one.
        OSError: if it cannot be downloaded.
    """
    name = f"onnxruntime-web-{VERSION}.tgz"
    kept = cache / name
    if kept.is_file() and _digest(kept.read_bytes()) == SHA512:
        content = kept.read_bytes()
    else:
        with urllib.request.urlopen(f"{registry()}onnxruntime-web/-/{name}", timeout=300) as answer:
            content = answer.read()
        if _digest(content) != SHA512:
            raise ValueError(f"{name}: expected sha512-{SHA512}, got sha512-{_digest(content)}")
        cache.mkdir(parents=True, exist_ok=True)
        kept.write_bytes(content)
    with tarfile.open(fileobj=io.BytesIO(content)) as files:
        found = {each: files.extractfile(f"package/dist/{each}") for each in (SCRIPT, PROGRAM)}
        return {each: file.read() for each, file in found.items() if file is not None}


def _digest(content: bytes) -> str:
    return base64.b64encode(hashlib.sha512(content).digest()).decode("ascii")
