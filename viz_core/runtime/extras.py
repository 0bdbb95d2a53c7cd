"""Check that the packages of an optional extra are installed in the versions it needs."""

from functools import lru_cache
from importlib.metadata import PackageNotFoundError, requires, version

from packaging.requirements import Requirement

_INSTALLED_AS = "attention-atlas"


@lru_cache(maxsize=16)
def require(extra: str, *names: str) -> None:
    """Raise ImportError unless the packages of an extra are installed in versions that it accepts.

    A checkout that was not installed has no list of requirements: there, nothing is checked.

    Args:
        extra: as in pyproject.toml.
        names: the packages to check; by default all of the extra.
    """
    try:
        requirements = [Requirement(line) for line in requires(_INSTALLED_AS) or []]
    except PackageNotFoundError:
        return
    of_extra = [each for each in requirements if each.marker is not None and each.marker.evaluate({"extra": extra})]
    installed = {each: _version(each.name) for each in of_extra if not names or each.name in names}
    unmet = [
        f"{each.name}{each.specifier} ({found or 'none'} is installed)"
        for each, found in installed.items()
        if found is None or not each.specifier.contains(found, prereleases=True)
    ]
    if unmet:
        raise ImportError(f"expected {', '.join(unmet)}: pip install '{_INSTALLED_AS}[{extra}]'")


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None
