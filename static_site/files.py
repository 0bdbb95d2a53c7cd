"""The files of a site, their digests, the service worker that knows them, and packages of the npm registry."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import os
import re
import tarfile
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, NamedTuple, cast

import onnxruntime

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
        return {"path": path, "bytes": len(data), "sha256": _digest(data, "sha256")}

    def write(self) -> None:
        """Write all files, the service worker with their digests, and files.json, which lists them."""
        digests = {path: _digest(data, "sha256") for path, data in sorted(self.contents.items())}
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


class Package(NamedTuple):
    """A package of the npm registry: `files` of it go to vendor/FOLDER; `sha512` is its `dist.integrity` there."""

    name: str
    version: str
    sha512: str
    folder: str
    files: tuple[str, ...]


PACKAGES = (
    Package(
        "onnxruntime-web",
        "1.30.0",
        "q0y+JrrtukXSzsBWEMccVfqX25LRmosXHF+CaRJmg8pZClzcV7svNc4rKY3jL02Vb7QmRMDs1SigqR4CXAfKYQ==",
        "onnxruntime-web",
        ("dist/ort.wasm.bundle.min.mjs", "dist/ort-wasm-simd-threaded.wasm"),
    ),
    Package(
        "@huggingface/tokenizers",
        "0.2.0",
        "LidMHe1FpcSYH4vcSjXooda34pC0M8m1gmDOv7SQi6Iv+ib1zX7J3sHBCC9/3FPCkn2k1b55FneVqMRxrr99pg==",
        "tokenizers",
        ("dist/tokenizers.min.mjs", "LICENSE"),
    ),
)


def registry() -> str:
    """The registry that npm would use: npm_config_registry, then the user's .npmrc, then npm's own."""
    variables = {name.lower(): value for name, value in os.environ.items()}
    settings = Path.home() / ".npmrc"
    text = settings.read_text(encoding="utf-8") if settings.is_file() else ""
    found = re.search(r"^registry\s*=\s*(\S+)", text, re.MULTILINE)
    own = found[1] if found else "https://registry.npmjs.org"
    return (variables.get("npm_config_registry") or own).rstrip("/") + "/"


def add_packages(files: SiteFiles, cache: Path) -> dict[str, object]:
    """Add what the site needs of npm packages, large programs compressed; the runtime's file, as `add` describes it.

    Raises:
        ValueError: if a package's digest is not the pinned one.
        OSError: if it cannot be downloaded.
    """
    files.add("vendor/onnxruntime-web/LICENSE", Path(onnxruntime.__file__).with_name("LICENSE").read_bytes())
    runtime: dict[str, object] = {}
    for package in PACKAGES:
        with tarfile.open(fileobj=io.BytesIO(download(package, cache))) as archive:
            for path in package.files:
                content = cast(IO[bytes], archive.extractfile(f"package/{path}")).read()
                name = f"vendor/{package.folder}/{Path(path).name}"
                if path.endswith(".wasm"):
                    runtime = files.add(f"{name}.gz", content)
                else:
                    files.add(name, content.replace(b"//# sourceMappingURL=", b"// source map: "))
    return runtime


def download(package: Package, cache: Path) -> bytes:
    """The archive of a package, which is kept in `cache` once it is downloaded.

    Raises:
        ValueError: if its digest is not the pinned one.
        OSError: if it cannot be downloaded.
    """
    name = f"{package.name.split('/')[-1]}-{package.version}.tgz"
    kept = cache / name
    if kept.is_file() and _digest(content := kept.read_bytes()) == package.sha512:
        return content
    with urllib.request.urlopen(f"{registry()}{package.name}/-/{name}", timeout=300) as answer:
        content = answer.read()
    if _digest(content) != package.sha512:
        raise ValueError(f"{name}: expected sha512-{package.sha512}, got sha512-{_digest(content)}")
    cache.mkdir(parents=True, exist_ok=True)
    kept.write_bytes(content)
    return content


def _digest(content: bytes, algorithm: str = "sha512") -> str:
    return base64.b64encode(hashlib.new(algorithm, content).digest()).decode("ascii")
