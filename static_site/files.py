"""The files of a site, models among them, their digests, and the service worker that knows them."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from static_site.model_files import WeightStore
from ui.text.words import languages
from viz_core.trace import Trace
from viz_core.trace.source import Projected
from viz_core.view.components import Sections, frame

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

        ValueError if the path is taken by a file with another content.

        Returns:
            Its path, size and digest, as `loadFile` takes them.
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


def add_model(
    files: SiteFiles, name: str, graphs: Mapping[str, bytes], store: WeightStore, **others: str
) -> dict[str, Any]:
    """Add a model's graphs and weights, and other files of its folder by their names without .json.gz."""
    folder = f"models/{name}"
    return {
        "graphs": {each: files.add(f"{folder}/{each}.onnx", graph) for each, graph in graphs.items()},
        "weights": files.add(f"{folder}/weights.gz", bytes(store.content)),
        **{each: files.add(f"{folder}/{each}.json.gz", content) for each, content in others.items()},
    }


def add_recorded(files: SiteFiles, page: str, found: Mapping[str, Any], trace: Trace) -> dict[str, Any]:
    """Add what the model makes of the example of its page, which shows that until the model has arrived.

    Args:
        found: as the script of the model returns it, but for its calls.
        trace: their queries and keys, recorded by the names that graphs give them.
    """
    sections = Sections()

    def place(values: np.ndarray) -> dict[str, Any]:
        return {"shape": values.shape, "offset": sections.add(values)}

    outputs: dict[str, dict[str, Any]] = {}
    for site in trace.sites:
        source = trace[site].source
        assert isinstance(source, Projected)
        outputs |= {f"{site}.{name}": place(getattr(source, name).float().numpy()) for name in ("queries", "keys")}
    header = {name: place(value) if isinstance(value, np.ndarray) else value for name, value in found.items()}
    return files.add(f"models/recorded/{page}.bin", frame(header | {"outputs": outputs}, sections))


def size_of(files: Mapping[str, Any]) -> int:
    """Bytes of all files of models."""
    return files["bytes"] if "bytes" in files else sum(map(size_of, files.values()))
