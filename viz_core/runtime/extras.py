"""What an extra of the installation brings: there and recent enough, or a sentence that says how to get it."""

from __future__ import annotations

from functools import lru_cache
from importlib.metadata import PackageNotFoundError, requires, version

from packaging.requirements import Requirement

_INSTALLED_AS = "attention-atlas"


@lru_cache(maxsize=16)
def require(extra: str, *names: str) -> None:
    """Go on only where what an extra brings is installed, in versions that it takes.

    A checkout on the path was not installed and has no list of them: there, imports speak for themselves.

    Args:
        extra: as in pyproject.toml.
        names: the packages it is about; all of the extra unless given.

    Raises:
        ImportError: naming each package that is missing or of another version, and what to type.
    """
    try:
        wanted = [Requirement(line) for line in requires(_INSTALLED_AS) or []]
    except PackageNotFoundError:
        return
    of_extra = [each for each in wanted if each.marker is not None and each.marker.evaluate({"extra": extra})]
    found = {each: _version(each.name) for each in of_extra if not names or each.name in names}
    unmet = [
        f"{each.name}{each.specifier} ({there or 'none'} is installed)"
        for each, there in found.items()
        if there is None or not each.specifier.contains(there, prereleases=True)
    ]
    if unmet:
        raise ImportError(f"expected {', '.join(unmet)}: pip install '{_INSTALLED_AS}[{extra}]'")


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
