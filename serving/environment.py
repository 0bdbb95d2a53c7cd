"""What a server starts in: a home folder that can be read, Streamlit's options, and the cores and memory it may use."""

import os
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

from serving.logs import log

NONE = "/nonexistent"
"""The home of accounts that have none (Debian policy, section 9.2.3)."""


def replace_unusable_home() -> None:
    """Set HOME to a folder that does not exist where looking for a file in it raises an error.

    Streamlit looks there for secrets before it answers. A home that is missing, empty or read-only is no problem, but
    with `HOME=/dev/null`, or another account's home, Streamlit answers 500 to every request.
    """
    try:
        (Path.home() / ".streamlit" / "secrets.toml").open("rb").close()
    except FileNotFoundError:
        return
    except (OSError, RuntimeError) as error:  # RuntimeError: the account is not known here
        log.warning(f"HOME: expected a readable folder; this server runs without one ({error})")
        os.environ["HOME"] = NONE


PROFILE = Path(__file__).resolve().parents[1] / ".streamlit" / "hosted.toml"


_NEEDED = {bool: "true or false", int: "a whole number", float: "a number"}


def profile(
    variables: Mapping[str, str],
    environment: Mapping[str, str] = os.environ,
    kinds: Mapping[str, type] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return the options of hosted.toml by full name ("server.maxUploadSize"), as `st.App.run` takes them.

    Environment variables take precedence, as with `streamlit run`, unless they are empty. SystemExit: with a line for
    each variable of a wrong type.

    Args:
        variables: name of each option's variable ({"server.port": "STREAMLIT_SERVER_PORT"}).
        kinds: type of each option ({"server.port": int}).
    """
    sections = tomllib.loads(PROFILE.read_text(encoding="utf-8"))
    options = {f"{section}.{name}": value for section, names in sections.items() for name, value in names.items()}
    found = {name: _read(environment[variable]) for name, variable in variables.items() if environment.get(variable)}
    wrong = {name: kinds[name] for name, value in found.items() if name in kinds and not _is(value, kinds[name])}
    if wrong:
        raise SystemExit(
            "\n".join(
                f"{variables[name]}: expected {_NEEDED[kind]}, got {found[name]!r}" for name, kind in wrong.items()
            )
        )
    return options | found


def _is(value: Any, kind: type) -> bool:
    """Whether the value has the TOML type: true is not a number, and 3 is a float too."""
    if kind not in _NEEDED:
        return True
    return isinstance(value, int | float if kind is float else kind) and (kind is bool or not isinstance(value, bool))


def _read(value: str) -> Any:
    """Parse a TOML value; booleans in any case, and text without quotes."""
    plain = value.lower() if value.lower() in ("true", "false") else value
    try:
        return tomllib.loads(f"value = {plain}")["value"]
    except tomllib.TOMLDecodeError:
        return value


_CGROUP = Path("/sys/fs/cgroup")
_UNLIMITED = 2**62  # version 1 of control groups writes about 2^63 where nothing is limited


def usable_cores(cgroup: Path = _CGROUP) -> int:
    """Return the number of cores by affinity and by the quota of the control group, at least 1."""
    affinity = getattr(os, "sched_getaffinity", None)  # Linux only
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, min(cores, int(_quota(cgroup) or cores)))


def usable_memory(cgroup: Path = _CGROUP) -> int:
    """Return the bytes of memory of the machine, or of the control group where that has fewer."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for name in ("memory.max", "memory/memory.limit_in_bytes"):
        with suppress(OSError, ValueError):  # "max" means no limit
            limit = int((cgroup / name).read_text(encoding="ascii"))
            return min(memory, limit) if 0 < limit < _UNLIMITED else memory
    return memory


def _quota(cgroup: Path) -> float | None:
    """Cores' worth of time, by version 2 or 1 of control groups; None where nothing is limited."""
    for names in (("cpu.max",), ("cpu/cpu.cfs_quota_us", "cpu/cpu.cfs_period_us")):
        with suppress(OSError, ValueError):  # "max 100000" means no limit
            quota, period = " ".join((cgroup / name).read_text(encoding="ascii") for name in names).split()
            return max(1.0, int(quota) / int(period)) if int(quota) > 0 else None
    return None
