"""What whoever runs the Atlas decides, as one typed object: environment variables with the prefix ATLAS_."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

HOSTED_TOKENS = 2048
HOSTED_CHARACTERS = 20_000
HOSTED_CACHE_MB = 256
MOST_WORKERS = 8
SLOTS_A_WORKER = 4  # sentences that wait together are translated together


def _where_hosted(limit: int) -> Any:
    """A limit that holds for strangers, and not for whoever runs the Atlas at home."""
    return lambda before: limit if before["hosted"] or before["models"] else None


class Settings(BaseSettings):
    """Read anew from the environment wherever `settings()` is called; frozen after that.

    Raises:
        pydantic.ValidationError: if a variable does not hold what its field takes; the message names it.
    """

    model_config = SettingsConfigDict(env_prefix="ATLAS_", frozen=True, env_ignore_empty=True, allow_inf_nan=False)

    device: str = Field(
        default="", description="where models run: `cuda`, `mps` or `cpu`; the best there is unless given"
    )
    threads: int = Field(
        default_factory=lambda: max(1, (os.cpu_count() or 1) // 2),
        ge=1,
        description="CPU threads of one forward pass; half the cores unless given",
    )
    hosted: bool = Field(
        default=False, description="strangers visit: only models that are offered, and the limits below"
    )
    models: Annotated[tuple[str, ...], NoDecode] = Field(
        default=(), description="the only models of the lab, with commas between them; any unless given or hosted"
    )
    model_folders: Annotated[tuple[Path, ...], NoDecode] = Field(
        default=(), description="folders whose models the lab may load, as in PATH"
    )
    model_memory_mb: int | None = Field(
        default=None,
        ge=1,
        description="memory that a model of the lab may need; four fifths of what is free unless given",
    )
    max_characters: int | None = Field(
        default_factory=_where_hosted(HOSTED_CHARACTERS),
        ge=1,
        description=f"characters of a text in the lab; {HOSTED_CHARACTERS:,} where hosted, else any number",
    )
    max_tokens: int | None = Field(
        default_factory=_where_hosted(HOSTED_TOKENS),
        ge=1,
        description=f"tokens of a text in the lab; {HOSTED_TOKENS:,} where hosted, else what the model takes",
    )
    max_picture_mb: float = Field(default=10, gt=0, le=10, description="size of a picture's file")
    max_megapixels: float = Field(
        default=40, gt=0, le=40, description="size of a picture, judged before it is unpacked"
    )
    max_sound_mb: float = Field(default=10, gt=0, le=10, description="size of a sound's file")
    max_sound_seconds: float = Field(default=30, gt=0, le=30, description="how long a sound may last")
    workers: int = Field(
        default_factory=lambda before: min(MOST_WORKERS, os.cpu_count() or 1) if before["hosted"] else 0,
        ge=0,
        description=f"processes that models run in, each on one thread; one a core, at most {MOST_WORKERS}, where "
        "hosted, else 0: in the process of the pages",
    )
    slots: int = Field(
        default_factory=lambda before: SLOTS_A_WORKER * before["workers"] or 2,
        ge=1,
        description=f"computations at once, more wait their turn; {SLOTS_A_WORKER} a worker, else 2",
    )
    queue: int = Field(default=100, ge=0, description="computations that may wait; more are told to try again")
    wait_seconds: float = Field(
        default=60, gt=0, description="how long one waits for its turn before it is told to try again"
    )
    max_seconds: float = Field(default=60, gt=0, description="how long one computation may take")
    stop_seconds: float = Field(
        default=10, ge=0, description="how long a server that was told to stop goes on with what it has begun"
    )
    cache_mb: int = Field(
        default_factory=lambda before: HOSTED_CACHE_MB if before["hosted"] else 2048,
        ge=1,
        description=f"recorded attention kept for who asks the same again; {HOSTED_CACHE_MB} where hosted, else 2,048",
    )
    max_visitors: int = Field(
        default=500, ge=1, description="windows open at once where hosted; one more is told to wait"
    )
    max_windows: int = Field(
        default=200, ge=1, description="of these, from one address: a class behind one router has one"
    )
    max_messages: float = Field(
        default=10, gt=0, le=1000, description="messages a second that one window may send; more wait, and become one"
    )
    max_address_messages: float = Field(
        default=200, gt=0, le=100_000, description="messages a second that all windows of one address may send"
    )
    max_message_kb: int = Field(default=1024, ge=16, le=20_480, description="size of a message of a window")
    silent_seconds: float = Field(
        default=20, gt=0, description="how long a connection may stay open and ask for no page"
    )
    slow_seconds: float = Field(
        default=30, gt=0, description="how long an answer may go out at less than 1 kB a second before it is given up"
    )
    max_downloads: int = Field(default=2, ge=1, description="files that are made for one window at once")
    session_mb: int = Field(
        default=32,
        ge=1,
        description="what one window may keep where hosted: of uploads, the oldest go first; with more in its "
        "controls, it begins anew",
    )
    controls_mb: int = Field(
        default=512,
        ge=1,
        description="what all windows may keep in their controls where hosted: the largest begin anew",
    )
    uploads_mb: int = Field(default=512, ge=1, description="uploads kept for all windows; more are refused")
    address_uploads_mb: int = Field(
        default=256, ge=1, description="of these, for the windows of one address: a class behind one router has one"
    )
    frame_ancestors: str = Field(
        default="",
        pattern=r"^[\w.:/*\- ']*$",
        description="sites that may show the Atlas in a frame, as in a content security policy",
    )
    metrics: str = Field(
        default="",
        pattern=r"^$|^[\w.\-\[\]:]+:\d{1,5}$",
        description="where Prometheus finds the counts, as `0.0.0.0:9501`; nowhere unless given",
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

    @property
    def restricted(self) -> bool:
        """Whether visitors may load nothing but what is offered."""
        return self.hosted or bool(self.models)

    @property
    def picture_limits(self) -> tuple[int, int]:
        """The most bytes and pixels of a picture."""
        return int(self.max_picture_mb * 2**20), int(self.max_megapixels * 1e6)

    @property
    def sound_limits(self) -> tuple[int, float]:
        """The most bytes and seconds of a sound."""
        return int(self.max_sound_mb * 2**20), self.max_sound_seconds

    @property
    def model_memory(self) -> int | None:
        """Bytes a model of the lab may need; None for whatever fits."""
        return None if self.model_memory_mb is None else self.model_memory_mb * 2**20


def settings() -> Settings:
    """What the environment says now."""
    return _read(frozenset(item for item in os.environ.items() if item[0].startswith("ATLAS_")))


def validated_settings() -> Settings:
    """The same, for a server that starts: where a variable cannot be, it ends here and says which.

    Raises:
        SystemExit: with a line for each such variable.
    """
    try:
        return settings()
    except ValidationError as error:
        lines = [
            f"ATLAS_{'.'.join(map(str, one['loc'])).upper()}: {one['msg']}"
            for one in error.errors()
            if one["type"] != "default_factory_not_called"  # follows from another that is wrong
        ]
        raise SystemExit("\n".join(lines)) from None


@lru_cache(maxsize=1)
def _read(_environment: frozenset[tuple[str, str]]) -> Settings:
    return Settings()  # milliseconds, so not at every look


def table() -> str:
    """Return the table of settings in docs/settings.md."""
    rows = ["| variable | default | what it decides |", "| --- | --- | --- |"]
    for name, field in Settings.model_fields.items():
        default = "" if field.default_factory is not None else _written(field.default)
        rows.append(f"| `ATLAS_{name.upper()}` | {default} | {field.description} |")
    return "\n".join(rows)


def _written(default: Any) -> str:
    if default in (None, "", ()):
        return ""
    return (
        str(int(default)) if isinstance(default, bool) else f"{default:,}" if not isinstance(default, str) else default
    )


if __name__ == "__main__":
    print(table())
