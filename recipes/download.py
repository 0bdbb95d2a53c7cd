"""Public data, fetched once and held to its checksum."""

from __future__ import annotations

import hashlib
import urllib.request
from http.client import HTTPException
from pathlib import Path
from urllib.error import URLError

_NAMES = {"md5": "MD5", "sha1": "SHA-1", "sha256": "SHA-256"}


def fetch(url: str, path: Path, checksum: str, algorithm: str) -> bytes:
    """Content of the file at `path`, downloaded from `url` where there is none; never unchecked.

    Args:
        algorithm: "md5", "sha1" or "sha256", whichever its publisher gives.

    Raises:
        ValueError: if the file is not the one with this checksum.
        OSError: if there is no file and none can be downloaded.
    """
    if path.exists():
        return _checked(path.name, path.read_bytes(), checksum, algorithm)
    print(f"downloading {url}", flush=True)
    try:
        with urllib.request.urlopen(url, timeout=60) as response:
            content = _checked(path.name, response.read(), checksum, algorithm)
    except HTTPException as error:
        raise OSError(f"{url} broke off: {error!r}") from None
    except URLError as error:
        raise OSError(f"{url} cannot be fetched: {error.reason}; put it there yourself, as {path}") from None
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return content


def _checked(name: str, content: bytes, checksum: str, algorithm: str) -> bytes:
    digest = hashlib.new(algorithm, content, usedforsecurity=False).hexdigest()
    if digest != checksum:
        raise ValueError(
            f"{name}: expected {_NAMES[algorithm]} {checksum}, got {digest}; delete the file and try again"
        )
    return content
