"""Settings of a server, as one typed object: environment variables with the prefix ATLAS_."""

import os
import re
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from serving.environment import usable_cores, usable_memory

HOSTED_TOKENS = 2048
HOSTED_CHARACTERS = 20_000
HOSTED_CACHE_MB = 256
MAX_WORKERS, MAX_PROCESSES = 8, 4
PAGES_MB, WORKER_MB = 1024, 700  # memory of the pages' process and of a worker, without larger models of the lab
_TERABYTE = 2**20  # in MB: no machine has more
SLOTS_A_WORKER = 8  # sentences that wait together are translated together


def _where_hosted(limit: int) -> Any:
    """Default of a limit that applies on public servers only."""
    return lambda before: limit if before["hosted"] or before["models"] else None


def affordable_workers() -> int:
    """Return how many workers fit into the memory of this process's control group or machine, from 1 to 8."""
    return max(1, min(MAX_WORKERS, (usable_memory() // 2**20 - PAGES_MB) // WORKER_MB))


class Settings(BaseSettings):
    """Settings from environment variables; immutable. Use `settings()` to get the current ones.

    pydantic.ValidationError if a variable has an invalid value; the message names it.
    """

    model_config = SettingsConfigDict(env_prefix="ATLAS_", frozen=True, env_ignore_empty=True, allow_inf_nan=False)

    device: str = Field(
        default="", description="device of the models: `cuda`, `mps` or `cpu`; default: the best available"
    )
    threads: int = Field(
        default_factory=lambda: max(1, usable_cores() // 2),
        ge=1,
        le=1024,
        description="CPU threads of one forward pass; default: half the cores",
    )
    hosted: bool = Field(default=False, description="public server: only the offered models, and the limits below")
    models: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(), description="the only models of the lab, separated by commas; default: any, unless hosted"
    )
    model_folders: Annotated[tuple[Path, ...], NoDecode] = Field(
        default=(), description="folders whose models the lab may load, as in PATH"
    )
    model_memory_mb: int | None = Field(
        default=None,
        ge=1,
        le=_TERABYTE,
        description="memory that a model of the lab may need; default: 80% of the free memory",
    )
    max_characters: int | None = Field(
        default_factory=_where_hosted(HOSTED_CHARACTERS),
        ge=1,
        le=10_000_000,
        description=f"characters of a text in the lab; {HOSTED_CHARACTERS:,} where hosted, else any number",
    )
    max_tokens: int | None = Field(
        default_factory=_where_hosted(HOSTED_TOKENS),
        ge=1,
        le=1_000_000,
        description=f"tokens of a text in the lab; {HOSTED_TOKENS:,} where hosted, else what the model takes",
    )
    max_picture_mb: float = Field(default=10, gt=0, le=10, description="size of a picture's file")
    max_megapixels: float = Field(
        default=40, gt=0, le=40, description="size of a picture, checked before it is decoded"
    )
    max_sound_mb: float = Field(default=10, gt=0, le=10, description="size of a sound's file")
    max_sound_seconds: float = Field(default=30, gt=0, le=30, description="maximum duration of a sound")
    workers: int = Field(
        default_factory=lambda before: min(usable_cores(), affordable_workers()) if before["hosted"] else 0,
        ge=0,
        le=256,
        description=f"processes that models run in, each on one thread; one for each core, at most {MAX_WORKERS} and "
        "as many as fit into the memory, where hosted, else 0: in the process of the pages",
    )
    processes: int = Field(
        default_factory=lambda before: min(usable_cores(), MAX_PROCESSES) if before["hosted"] else 1,
        ge=1,
        le=64,
        description="processes of pages behind HAProxy, between which the limits of the server are divided, except "
        f"`ATLAS_QUEUE`; one for each core, at most {MAX_PROCESSES}, where hosted and HAProxy is installed, else 1",
    )
    slots: int = Field(
        default_factory=lambda before: SLOTS_A_WORKER * before["workers"] or 2,
        ge=1,
        le=2048,
        description=f"computations at once, more wait their turn; {SLOTS_A_WORKER} a worker, else 2",
    )
    queue: int = Field(
        default=100,
        ge=0,
        le=10_000,
        description="computations that may wait in a process of pages; further ones are refused",
    )
    wait_seconds: float = Field(
        default=60, gt=0, le=3600, description="how long a computation may wait before it is refused"
    )
    max_seconds: float = Field(default=60, gt=0, le=3600, description="time limit of a computation")
    cpu_seconds: float = Field(
        default_factory=lambda before: before["max_seconds"] / 2 if before["hosted"] else 3600,
        gt=0,
        le=3600,
        description="processor seconds of a computation; default: half its time limit where hosted, else 3,600",
    )
    stop_seconds: float = Field(
        default=10, ge=0, le=3600, description="how long running computations may go on after a request to stop"
    )
    cache_mb: int = Field(
        default_factory=lambda before: HOSTED_CACHE_MB if before["hosted"] else 2048,
        ge=1,
        le=_TERABYTE,
        description=f"cache of recorded attention; {HOSTED_CACHE_MB} where hosted, else 2,048",
    )
    max_visitors: int = Field(
        default=500, ge=1, le=100_000, description="windows open at once where hosted; further ones are refused"
    )
    max_windows: int = Field(
        default=200,
        ge=1,
        le=100_000,
        description="of these, from one address; a class behind one router shares an address",
    )
    max_messages: float = Field(
        default=10, gt=0, le=1000, description="messages per second from one window; further ones wait and are merged"
    )
    max_address_messages: float = Field(
        default=200, gt=0, le=100_000, description="messages per second from all windows of one address"
    )
    max_message_kb: int = Field(default=1024, ge=16, le=20_480, description="size of a message of a window")
    silent_seconds: float = Field(
        default=20, gt=0, le=3600, description="how long a connection may stay open without requesting a page"
    )
    slow_seconds: float = Field(
        default=30, gt=0, le=3600, description="how long a response may be sent at less than 1 kB per second"
    )
    max_downloads: int = Field(default=2, ge=1, le=100, description="files prepared for one window at once")
    session_mb: int = Field(
        default=32,
        ge=1,
        le=_TERABYTE,
        description="memory of one window where hosted: the oldest uploads are deleted first; with more in its "
        "controls, it is reset",
    )
    controls_mb: int = Field(
        default=512,
        ge=1,
        le=_TERABYTE,
        description="memory of the controls of all windows where hosted: the largest windows are reset",
    )
    uploads_mb: int = Field(
        default=512, ge=1, le=_TERABYTE, description="uploads of all windows; further ones are refused"
    )
    address_uploads_mb: int = Field(
        default=256, ge=1, le=_TERABYTE, description="of these, from the windows of one address"
    )
    frame_ancestors: str = Field(
        default="",
        pattern=r"^[\w.:/*\- ']*$",
        description="sites that may show the Atlas in a frame, as in a content security policy",
    )
    docs: str = Field(
        default="",
        pattern=r"^$|^https?://[\w.\-\[\]:/~%]+$",
        description="address of the documentation site (`make docs`), whose reference the code of a chapter links to; "
        "default: none",
    )
    site: str = Field(
        default="",
        pattern=r"^$|^https?://[\w.\-\[\]:/~%]+$",
        description="address of the published site without a server (`make site`), whose pages the app offers for "
        "sharing; default: none",
    )
    metrics: str = Field(
        default="",
        pattern=r"^$|^[\w.\-\[\]:]+:\d{1,5}$",
        description="address of the metrics for Prometheus, and of health checks that do not wait for the event loop, "
        "such as `0.0.0.0:9501`; default: none",
    )
    runner: Literal["here", "serve"] = Field(
        default="here", description="where models run: `here`, in this process, or on Ray `serve`"
    )
    ray_address: str = Field(default="auto", description="the Ray cluster, where models run on Ray Serve")

    @field_validator("models", mode="before")
    @classmethod
    def _names(cls, value: Any) -> Any:
        return tuple(filter(None, map(str.strip, value.split(",")))) if isinstance(value, str) else value

    @field_validator("model_folders", mode="before")
    @classmethod
    def _folders(cls, value: Any) -> Any:
        return tuple(filter(None, map(str.strip, value.split(os.pathsep)))) if isinstance(value, str) else value

    @field_validator("model_folders")
    @classmethod
    def _no_root(cls, folders: tuple[Path, ...]) -> tuple[Path, ...]:
        if any(folder.resolve() == Path(folder.resolve().anchor) for folder in folders):
            raise ValueError("the root of a file system is not a folder of models")
        return folders

    @field_validator("frame_ancestors")
    @classmethod
    def _no_site_at_all(cls, sites: str) -> str:
        if any(re.fullmatch(r"(\w+:)?(//)?(\*(\.[\w-]+)?)?(:[\d*]+)?", site) for site in sites.split()):
            raise ValueError("name the sites: this allows any, or any below a top-level domain")
        return sites

    @field_validator("metrics")
    @classmethod
    def _port(cls, address: str) -> str:
        if address and not 0 < int(address.rpartition(":")[2]) < 2**16:
            raise ValueError("a port is between 1 and 65535")
        return address

    @property
    def restricted(self) -> bool:
        """Whether visitors may load offered models only."""
        return self.hosted or bool(self.models)

    @property
    def picture_limits(self) -> tuple[int, int]:
        """Maximum bytes and pixels of a picture."""
        return int(self.max_picture_mb * 2**20), int(self.max_megapixels * 1e6)

    @property
    def sound_limits(self) -> tuple[int, float]:
        """Maximum bytes and seconds of a sound."""
        return int(self.max_sound_mb * 2**20), self.max_sound_seconds

    @property
    def model_memory(self) -> int | None:
        """Maximum bytes of a model of the lab; None for whatever fits."""
        return None if self.model_memory_mb is None else self.model_memory_mb * 2**20


_OTHER_VALUES = {
    "device": "`cuda`, `mps`, `cpu`, with a number",
    "hosted": "0 or 1",
    "models": "names of the Hub",
    "model_folders": "folders, but not `/`",
    "frame_ancestors": "sites by name, no `*` alone",
    "docs": "an address with `http`",
    "site": "an address with `http`",
    "metrics": "HOST:PORT, 1 to 65,535",
    "runner": "`here` or `serve`",
    "ray_address": "`auto` or an address",
}
"""Values of the settings that are not numbers."""


def settings() -> Settings:
    """Return the settings of the current environment."""
    return _read(frozenset(item for item in os.environ.items() if item[0].startswith("ATLAS_")))


@lru_cache(maxsize=1)
def _read(_environment: frozenset[tuple[str, str]]) -> Settings:
    return Settings()  # takes milliseconds, so it is cached


def table() -> str:
    """Return the table of settings in docs/settings.md."""
    rows = ["| variable | default | values | what it decides |", "| --- | --- | --- | --- |"]
    for name, field in Settings.model_fields.items():
        default = "" if field.default_factory is not None else _written(field.default)
        rows.append(f"| `ATLAS_{name.upper()}` | {default} | {bounds(name)} | {field.description} |")
    return "\n".join(rows)


def bounds(name: str) -> str:
    """Return the values that a setting may have, as docs/settings.md lists them."""
    field = Settings.model_fields[name]
    if name in _OTHER_VALUES:
        return _OTHER_VALUES[name]
    found = {kind: getattr(one, kind) for one in field.metadata for kind in ("gt", "ge", "le") if hasattr(one, kind)}
    low = f"{found['ge']:,}" if "ge" in found else f"above {found['gt']:,}"
    return f"{low} to {found['le']:,}"


def _written(default: Any) -> str:
    if default in (None, "", ()):
        return ""
    return (
        str(int(default)) if isinstance(default, bool) else f"{default:,}" if not isinstance(default, str) else default
    )


if __name__ == "__main__":
    print(table())
