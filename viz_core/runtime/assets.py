"""Where the files lie that come with the code: weights, words, samples, scripts and styles."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from viz_core.runtime.refusal import RefusalError

_LIBRARY = Path(__file__).resolve().parents[1]
_WITHIN = _LIBRARY / "assets"

ASSETS = _WITHIN if _WITHIN.is_dir() else _LIBRARY.parent / "assets"
"""A wheel carries them within the library; a checkout has them beside it."""


class AssetError(RefusalError):
    """A file that comes with the code is missing or damaged; the message is for a person."""


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """While a file that ships is read and made sense of: whatever goes wrong in here is the file's fault.

    Raises:
        AssetError: in place of any other error, naming the file.
    """
    try:
        yield
    except AssetError:
        raise
    except Exception as error:  # each reader has errors of its own for a file that is not what it was
        name = path.relative_to(ASSETS).as_posix() if path.is_relative_to(ASSETS) else path.name
        raise AssetError(
            "The file {file} of the Atlas is missing or damaged. Install the Atlas again.", file=name
        ) from error
