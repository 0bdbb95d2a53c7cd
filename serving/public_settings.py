"""Settings at the start of a server: all valid; of a public one with its limits on, and without contradictions."""

import os
import re
from collections.abc import Iterator

from pydantic import ValidationError

from serving.environment import usable_memory
from serving.settings import MAX_WORKERS, PAGES_MB, WORKER_MB, Settings, settings


def validated_settings() -> Settings:
    """Return the settings at the start of a server, which exits if a variable is invalid.

    SystemExit: with a line for each invalid variable.
    """
    try:
        return settings()
    except ValidationError as error:
        lines = [
            f"ATLAS_{'.'.join(map(str, one['loc'])).upper()}: {one['msg']}"
            for one in error.errors()
            if one["type"] != "default_factory_not_called"  # follows from another error
        ]
        raise SystemExit("\n".join(lines)) from None


def hosted_settings(port: int | None = None, protects_uploads: bool = True) -> Settings:
    """Return the settings of a public server, which cannot be started without its limits.

    SystemExit if a variable is invalid, takes the limits away, or makes another one pointless.

    Args:
        port: that the server listens on.
        protects_uploads: whether Streamlit's protection against requests of other sites is on.
    """
    if not os.environ.get("ATLAS_HOSTED", "").strip():
        os.environ["ATLAS_HOSTED"] = "1"  # empty is how compose files and charts write "not set"
    allowed = validated_settings()
    problems = [*_problems(allowed, port)]
    if not protects_uploads:
        problems.append("server.enableXsrfProtection: without it any site uploads files in a visitor's name")
    if problems:
        raise SystemExit("\n".join(problems))
    return allowed


def _problems(allowed: Settings, port: int | None) -> Iterator[str]:
    """Yield what a public server cannot be started with, a line each, by the name of its variable."""
    if not allowed.hosted:
        yield "ATLAS_HOSTED: a public server has the hosted limits; at home use `streamlit run app.py`"
    if not re.fullmatch(r"((cpu|cuda|mps)(:\d+)?)?", allowed.device):
        yield f"ATLAS_DEVICE: {allowed.device!r} is not a device"
    need, memory = PAGES_MB + allowed.workers * WORKER_MB, usable_memory() // 2**20
    if allowed.workers > MAX_WORKERS and need > memory:
        yield (
            f"ATLAS_WORKERS: {allowed.workers} workers need about {need:,} MB of memory; this machine or container "
            f"has {memory:,}"
        )
    for name in ("max_seconds", "wait_seconds", "silent_seconds", "slow_seconds"):
        if getattr(allowed, name) < 1:
            yield f"ATLAS_{name.upper()}: nobody is served in less than a second, got {getattr(allowed, name):g}"
    if "max_windows" in allowed.model_fields_set and allowed.max_windows > allowed.max_visitors:
        yield (
            f"ATLAS_MAX_WINDOWS: {allowed.max_windows:,} windows of one address are more than the "
            f"{allowed.max_visitors:,} of ATLAS_MAX_VISITORS"
        )
    largest = max(allowed.max_picture_mb, allowed.max_sound_mb)
    if allowed.session_mb < largest:
        yield f"ATLAS_SESSION_MB: {allowed.session_mb} MB have no room for a file of {largest:g} MB"
    if allowed.address_uploads_mb > allowed.uploads_mb:
        yield (
            f"ATLAS_ADDRESS_UPLOADS_MB: {allowed.address_uploads_mb:,} MB of one address are more than the "
            f"{allowed.uploads_mb:,} of ATLAS_UPLOADS_MB"
        )
    for folder in allowed.model_folders:
        if not folder.is_dir() or folder.resolve().parts[:2] in (("/", "proc"), ("/", "sys"), ("/", "dev")):
            yield f"ATLAS_MODEL_FOLDERS: {folder} is no folder of files"
    if port is not None and allowed.metrics.rpartition(":")[2] == str(port):
        yield f"ATLAS_METRICS: port {port} is the server's own"


def unknown_settings() -> tuple[str, ...]:
    """Return variables that begin as settings do and are none, such as a misspelt one."""
    known = {f"ATLAS_{name.upper()}" for name in Settings.model_fields}
    return tuple(sorted(name for name in os.environ if name.startswith("ATLAS_") and name not in known))
