"""A Streamlit server of our own and a Chromium to look at it, for benchmarks and browser tests alike."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NO_SETTINGS: Mapping[str, str] = {}
HOSTED = "hosted.py"  # starts itself, under the profile for strangers
CHROMIUM_ARGUMENTS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync"
).split()
HEADLESS_SHELL = "chromium-headless-shell"
"""The same engine without a window: a new one loads three hundred scripts of its own beside a page's first second."""


def find_chromium() -> str | None:
    """The system's Chromium or Chrome, or None; without a window where there is such a one."""
    names = (HEADLESS_SHELL, "chromium", "chromium-browser", "google-chrome")
    return next((path for path in map(shutil.which, names) if path), None)


@dataclass(frozen=True)
class Server:
    """A server that answers: its address and its process."""

    url: str
    pid: int


@contextmanager
def serve(folder: Path, script: str = "app.py") -> Iterator[str]:
    """A Streamlit script of this repository, or HOSTED, on a free port, and its address; the log goes to `folder`.

    Raises:
        RuntimeError: if the server stops or does not come up; the message holds its log.
    """
    with running(folder, script) as server:
        yield server.url


@contextmanager
def running(folder: Path, script: str = "app.py", settings: Mapping[str, str] = NO_SETTINGS) -> Iterator[Server]:
    """The same with its process, and with settings (ATLAS_ variables) of its own. Raises as `serve` does."""
    server, url = start(folder, script, settings)
    try:
        wait_until_healthy(url, server, folder / "server.log")
        yield Server(url, server.pid)
    finally:
        server.terminate()
        server.wait(timeout=30)


def start(
    folder: Path, script: str = "app.py", settings: Mapping[str, str] = NO_SETTINGS
) -> tuple[subprocess.Popen[bytes], str]:
    """The process of a server that is still starting, and where it will be; the log is `server.log` in `folder`."""
    port = free_port()
    options = {"SERVER_HEADLESS": "true", "SERVER_PORT": str(port), "SERVER_ADDRESS": "127.0.0.1"}
    options["SERVER_FILE_WATCHER_TYPE"] = "none"
    environment = os.environ | {f"STREAMLIT_{name}": value for name, value in options.items()} | settings
    command = [script] if script == HOSTED else ["-m", "streamlit", "run", script]
    with (folder / "server.log").open("wb") as output:
        server = subprocess.Popen(
            [sys.executable, *command], cwd=ROOT, env=environment, stdout=output, stderr=subprocess.STDOUT
        )
    return server, f"http://127.0.0.1:{port}"


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def wait_until_healthy(url: str, server: subprocess.Popen[bytes], log: Path, route: str = "/_stcore/health") -> None:
    """Until `route` answers 200.

    Raises:
        RuntimeError: if the server stops or does not come up; the message holds its log.
    """
    for _ in range(2400):
        if server.poll() is not None:
            raise RuntimeError(f"the server stopped: {log.read_text()}")
        try:
            with urllib.request.urlopen(f"{url}{route}", timeout=5) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError(f"the server did not come up: {log.read_text()}")
