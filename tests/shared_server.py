"""A server that all test processes of one run visit: the first to ask starts it, the last to leave stops it.

And the site without a server, which `python -m tests.shared_server` builds once for all of them, while other tests run.
Each chapter is recorded in one language, which the pages of others show: recording runs the app at every setting.
"""

import fcntl
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest

from benchmarks.serving import NO_SETTINGS, ROOT, Server, start, wait_until_healthy
from benchmarks.static_site import APP, SUB_PATH
from ui.chapter.contents import chapter_entries


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


@pytest.fixture(scope="session", autouse=True)
def site_build(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Start the build with the first test of a process, if the run needs the site and no other process builds it."""
    if not any("site_folder" in getattr(item, "fixturenames", ()) for item in request.session.items):
        yield
        return
    process = _start(run_folder(tmp_path_factory) / "site")
    yield
    if process:
        process.wait()


@pytest.fixture(scope="session")
def site_folder(site_build: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the site at a sub-path."""
    root = run_folder(tmp_path_factory) / "site"
    with (root / "lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # until the build ends
    assert any(root.glob("*/*/files.json")), (root / "report").read_text(encoding="utf-8")
    return root


def _start(root: Path) -> subprocess.Popen[bytes] | None:
    """The build, which holds the lock until it ends, or None if another process has started it."""
    root.mkdir(exist_ok=True)
    with (root / "lock").open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        if (root / "report").exists():
            return None
        with (root / "report").open("wb") as report:
            command = [sys.executable, "-m", "tests.shared_server", str(root / SUB_PATH)]
            return subprocess.Popen(
                command, cwd=ROOT, stdout=report, stderr=subprocess.STDOUT, pass_fds=[lock.fileno()]
            )


def recorded_in() -> dict[str, str]:
    """The language of each chapter that the site records, in turn."""
    recorded = [name for name, entry in chapter_entries().items() if entry.site]
    return dict(zip(recorded, cycle(("zh-TW", "en", "pt-BR")), strict=False))


def _build(folder: Path) -> None:
    from static_site import recorded_pages
    from static_site.build import build_site
    from tests import app_test  # noqa: F401

    record, made = recorded_pages.record_chapter, dict[str, recorded_pages.Recording]()

    def record_once(name: str, site: Sequence[Mapping[str, Any]], _language: str) -> recorded_pages.Recording:
        if name not in made:
            made[name] = record(name, site, recorded_in()[name])
        return made[name]

    recorded_pages.record_chapter = record_once
    build_site(folder, APP)


if __name__ == "__main__":
    _build(Path(sys.argv[1]))
