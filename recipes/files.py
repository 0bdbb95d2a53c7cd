"""Files of a training run: data fetched once, what ships, and the lines of progress."""

import hashlib
import json
import re
import time
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import Any
from urllib.error import URLError

import torch
from safetensors.torch import save
from torch import nn


def ship_weights(model: nn.Module, path: Path) -> str:
    """Write every parameter once, in float16, and round the model's own to match; returns the file's SHA-256.

    Scores measured afterwards are those of the weights that ship.
    """
    weights = save({n: p.detach().half().cpu().contiguous() for n, p in model.named_parameters()})
    path.write_bytes(weights)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.half())
    return hashlib.sha256(weights).hexdigest()


def write_json(path: Path, content: dict[str, Any]) -> None:
    """Readable JSON, in the order given."""
    path.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def write_checkpoint(folder: Path, config: dict[str, Any], training: dict[str, Any], card: str) -> None:
    """Write what stands beside the weights of a model, and print its scores."""
    write_json(folder / "config.json", config)
    write_json(folder / "training.json", training)
    (folder / "card.md").write_text(card, encoding="utf-8")
    print(json.dumps(config["scores"]), flush=True)


def record(folder: Path, measured: dict[str, Any], section: str) -> None:
    """Add measurements to a checkpoint's training.json, and a section to its card."""
    path = folder / "training.json"
    write_json(path, json.loads(path.read_text(encoding="utf-8")) | measured)
    add_section(folder / "card.md", section)


def add_section(card: Path, section: str) -> None:
    """Add a section, which begins with its heading: in the place of an older one, or before "## Data"."""
    heading = re.escape(section.splitlines()[0])
    older = re.compile(rf"^{heading}\n.*?(?=^## |\Z)", flags=re.MULTILINE | re.DOTALL)
    text = older.sub("", card.read_text(encoding="utf-8"))
    card.write_text(text.replace("## Data\n", f"{section}\n## Data\n", 1), encoding="utf-8")


def settings_table(*settings: dict[str, Any]) -> str:
    """Rows of a Markdown table, a setting each."""
    return "\n".join(f"| {key} | {value} |" for part in settings for key, value in part.items())


_NAMES = {"md5": "MD5", "sha1": "SHA-1", "sha256": "SHA-256"}


def fetch(url: str, path: Path, checksum: str, algorithm: str) -> bytes:
    """Content of the file at `path`, downloaded from `url` where there is none; never unchecked.

    Args:
        algorithm: "md5", "sha1" or "sha256", whichever its publisher gives.
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


class Clock:
    """Seconds of work, going on from those of an earlier run, and how far along it is.

    Progress is the larger part done of two budgets: epochs, and minutes where a limit is set. A
    schedule that follows it comes to its end in time on any machine.
    """

    def __init__(self, epochs: int, minutes: float | None, elapsed: float = 0.0) -> None:
        self.epochs = epochs
        self.limit = minutes * 60 if minutes else None
        self._start = time.monotonic() - elapsed
        self._last_line = 0.0

    @property
    def elapsed(self) -> float:
        """Seconds of work, those of earlier runs included."""
        return time.monotonic() - self._start

    def progress(self, epochs_done: float) -> float:
        """0 at the start to 1 when either budget is spent."""
        by_time = self.elapsed / self.limit if self.limit else 0.0
        return min(1.0, max(epochs_done / self.epochs, by_time))

    @property
    def due(self) -> bool:
        """Whether the next line would be printed."""
        return self.elapsed - self._last_line >= 5

    def line(self, epochs_done: float, loss: float, per_second: float, unit: str = "tokens") -> None:
        """Print where training stands, at most every five seconds."""
        if not self.due:
            return
        self._last_line = self.elapsed
        progress = self.progress(epochs_done)
        left = self.elapsed * (1 - progress) / progress if progress > 0 else 0.0
        print(
            f"epoch {epochs_done:6.2f}  {progress:6.1%}  loss {loss:.3f}  {per_second:,.0f} {unit}/s  "
            f"{format_seconds(left)} left",
            flush=True,
        )


def format_seconds(seconds: float) -> str:
    """ "1:02:03" """
    minutes, second = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{second:02d}"
