"""A server that all test processes of one run visit: the first to ask starts it, the last to leave stops it."""

import fcntl
import json
import os
import signal
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from benchmarks.serving import NO_SETTINGS, Server, start, wait_until_healthy


@contextmanager
def shared_server(
    script: str, factory: pytest.TempPathFactory, settings: Mapping[str, str] = NO_SETTINGS
) -> Iterator[Server]:
    """`script` on a free port, for as long as any process of this run wants it."""
    folder = run_folder(factory) / Path(script).stem
    folder.mkdir(exist_ok=True)
    with _state(folder) as state:
        if not state.get("visitors"):
            process, url = start(folder, script, settings)
            wait_until_healthy(url, process, folder / "server.log")
            state.update(visitors=0, url=url, pid=process.pid)
        state["visitors"] += 1
        server = Server(state["url"], state["pid"])
    try:
        yield server
    finally:
        with _state(folder) as state:
            state["visitors"] -= 1
            if state["visitors"] == 0:
                os.kill(server.pid, signal.SIGTERM)


def run_folder(factory: pytest.TempPathFactory) -> Path:
    """What the processes of a run have in common: each has a folder of its own in it."""
    own = factory.getbasetemp()
    return own.parent if "PYTEST_XDIST_WORKER" in os.environ else own


@contextmanager
def _state(folder: Path) -> Iterator[dict[str, Any]]:
    """What is known of the server, to be read and changed by one process at a time."""
    with (folder / "state.json").open("a+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        state = json.loads(file.read() or "{}")
        yield state
        file.truncate(0)
        file.write(json.dumps(state))
