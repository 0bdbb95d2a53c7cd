"""The site without a server, built once for all test processes of a run, while other tests run."""

import fcntl
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.serving import ROOT
from benchmarks.static_site import build_command
from tests.shared_server import run_folder


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
            return subprocess.Popen(
                build_command(root), cwd=ROOT, stdout=report, stderr=subprocess.STDOUT, pass_fds=[lock.fileno()]
            )
