"""Files that ship with the project, and the provenance of results that are written to files."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from viz_core.runtime.refusal import RefusalError

_LIBRARY = Path(__file__).resolve().parents[1]
_PACKAGED = _LIBRARY / "assets"

ASSETS = _PACKAGED if _PACKAGED.is_dir() else _LIBRARY.parent / "assets"
"""Within the library in a wheel, beside it in a checkout."""


class AssetError(RefusalError):
    """A file that ships with the code is missing or damaged."""


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn any error while a shipped file is read and parsed into an AssetError."""
    try:
        yield
    except AssetError:
        raise
    except Exception as error:  # each reader raises errors of its own for damaged files
        name = path.relative_to(ASSETS).as_posix() if path.is_relative_to(ASSETS) else path.name
        raise AssetError(
            "The file {file} of the Atlas is missing or damaged. Install the Atlas again.", file=name
        ) from error


@dataclass(frozen=True)
class Provenance:
    """The model that computed a result, and its input; "" where unknown."""

    model: str = ""  # its name
    revision: str = ""  # its version: a commit, a package's version, or the start of the checksum of its weights
    text: str = ""  # its input, if that was text


UNKNOWN = Provenance()
"""Nothing is known."""
