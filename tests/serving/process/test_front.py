"""The front's configuration, and the processes behind it: replaced when they end, and stopped together."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from serving.process import front
from serving.process.front import configuration, find_haproxy
from serving.process.supervisor import divided, reserve_ports
from serving.settings import settings
from tests.source_files import ROOT

TIMEOUT = 60.0


def lines(text: str) -> list[str]:
    return [line.partition("#")[0].strip() for line in text.splitlines()]


def test_a_browser_stays_with_its_process_and_each_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATLAS_MAX_VISITORS", "30")
    monkeypatch.delenv("FORWARDED_ALLOW_IPS", raising=False)
    made = lines(configuration(settings(), "10.0.0.1", 8501, [4001, 4002]))
    assert "maxconn 240" in made
    assert [line for line in made if line.startswith("bind")] == ["bind 10.0.0.1:8501"]
    assert "cookie atlas-process insert indirect nocache httponly attr SameSite=Lax" in made
    assert "balance leastconn" in made, "a class behind one router has one address"
    assert [line for line in made if line.startswith("server ")] == [
        "server pages-0 127.0.0.1:4001 cookie 0",
        "server pages-1 127.0.0.1:4002 cookie 1",
    ]
    assert "option httpchk GET /healthz" in made
    assert "option redispatch 1" in made
    assert "timeout tunnel 1h" in made


@pytest.mark.parametrize(
    ("trusted", "unless"),
    [
        (None, " unless { src 127.0.0.1/32 }"),
        ("172.30.57.2,10.244.0.0/16, ::1", " unless { src 172.30.57.2/32 10.244.0.0/16 ::1/128 }"),
        ("a-socket", ""),
        ("*", None),
    ],
)
def test_only_a_trusted_proxy_says_where_a_visitor_is(
    monkeypatch: pytest.MonkeyPatch, trusted: str | None, unless: str | None
) -> None:
    monkeypatch.delenv("FORWARDED_ALLOW_IPS", raising=False)
    if trusted is not None:
        monkeypatch.setenv("FORWARDED_ALLOW_IPS", trusted)
    made = lines(configuration(settings(), None, 8501, [4001]))
    rule = None if unless is None else f"http-request del-header x-forwarded- -m beg{unless}"
    assert [line for line in made if "x-forwarded-" in line] == [rule] * (rule is not None)
    assert "option forwardfor" in made


def test_inside_another_sites_frame_the_cookie_is_sent_too() -> None:
    made = lines(configuration(settings(), "::1", 8501, [4001], "none"))
    assert "cookie atlas-process insert indirect nocache httponly secure attr SameSite=None" in made
    assert "bind [::1]:8501" in made


@pytest.mark.skipif(find_haproxy() is None, reason="no HAProxy here")
@pytest.mark.parametrize("address", [None, "127.0.0.1", "::1"])
def test_haproxy_reads_it_without_a_warning(address: str | None, tmp_path: Path) -> None:
    (tmp_path / "haproxy.cfg").write_text(configuration(settings(), address, 8501, [4001, 4002], "none"))
    command = [str(find_haproxy()), "-c", "-f", str(tmp_path / "haproxy.cfg")]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    assert not re.search("WARNING|ALERT", checked.stderr), checked.stderr


def test_haproxy_is_found_where_only_root_looks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(front, "_SYSTEM", (str(tmp_path),))
    monkeypatch.setenv("PATH", "")
    assert find_haproxy() is None
    (tmp_path / "haproxy").touch(0o755)
    assert find_haproxy() == str(tmp_path / "haproxy")


def test_limits_of_the_processes_add_up_to_those_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ATLAS_HOSTED", "1")
    monkeypatch.setenv("ATLAS_MAX_WINDOWS", "5")
    whole = settings()
    for name, value in divided(whole, 2).items():
        monkeypatch.setenv(name, value)
    share = settings()
    assert (share.max_windows, share.max_visitors, share.uploads_mb) == (3, 250, 256)
    assert share.max_address_messages == 100
    assert share.queue == whole.queue, "visitors of a process that died come to one that is left"
    assert (share.max_messages, share.session_mb) == (whole.max_messages, whole.session_mb), "of one window"


PROGRAM = """
import os, signal, socket, sys, time
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from serving.process.supervisor import listening, supervise

folder, front, ports = Path(sys.argv[1]), sys.argv[2], [int(port) for port in sys.argv[3:]]

def work(name):
    signal.signal(signal.SIGTERM, lambda *_: ((folder / f"{name}.stopping").touch(), time.sleep(0.2), sys.exit()))
    (folder / f"{name}.{os.getpid()}").touch()
    time.sleep(600)

def serve(name):
    time.sleep(0.3)  # it loads libraries
    with ExitStack() as until:
        for port in ports:
            until.enter_context(socket.create_server(("127.0.0.1", port)))
        work(name)

def visible():
    if front == "fails" or not listening(ports):
        sys.exit()
    work("front")

pages = [partial(work, "one"), partial(serve, "two")]
number = supervise(visible, pages, {"models": partial(work, "models")}, 5, ports)
print(int(number))
"""


@pytest.fixture
def supervised(tmp_path: Path) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    """Starts the program; what it leaves behind is killed."""
    begun: list[subprocess.Popen[str]] = []

    def begin(front: str, *ports: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", PROGRAM, str(tmp_path), front, *map(str, ports)]
        begun.append(subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
        return begun[-1]

    yield begin
    for each in begun:
        each.kill()
    for path in tmp_path.glob("*.[0-9]*"):  # or nobody would read the end of what they may still write
        with suppress(ProcessLookupError):
            os.kill(int(path.suffix[1:]), signal.SIGKILL)
    for each in begun:
        each.communicate()


def pids(folder: Path, name: str) -> list[int]:
    return [int(path.suffix[1:]) for path in folder.glob(f"{name}.[0-9]*")]


def wait_for(true: Callable[[], bool]) -> None:
    end = time.monotonic() + TIMEOUT
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


def alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


@pytest.mark.attack("disorder")
def test_what_ends_is_started_again_and_all_end_together(
    tmp_path: Path, supervised: Callable[..., subprocess.Popen[str]]
) -> None:
    program = supervised("works")
    wait_for(lambda: all(pids(tmp_path, name) for name in ("one", "two", "models", "front")))
    (first,) = pids(tmp_path, "one")
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: len(pids(tmp_path, "one")) == 2)
    everyone = [pid for name in ("one", "two", "models", "front") for pid in pids(tmp_path, name)]
    program.terminate()
    assert program.communicate(timeout=TIMEOUT)[0].splitlines()[-1] == str(int(signal.SIGTERM))
    assert not any(map(alive, everyone))
    assert all((tmp_path / f"{name}.stopping").exists() for name in ("one", "two", "models", "front"))


@pytest.mark.attack("disorder")
def test_they_end_with_the_first_process_even_when_that_is_killed(
    tmp_path: Path, supervised: Callable[..., subprocess.Popen[str]]
) -> None:
    program = supervised("works")
    wait_for(lambda: all(pids(tmp_path, name) for name in ("one", "two", "models", "front")))
    everyone = [pid for name in ("one", "two", "models", "front") for pid in pids(tmp_path, name)]
    program.kill()
    program.wait(TIMEOUT)
    wait_for(lambda: all((tmp_path / f"{name}.stopping").exists() for name in ("one", "two", "models", "front")))
    wait_for(lambda: not any(map(alive, everyone)))


def test_a_front_that_cannot_be_started_ends_the_server(
    tmp_path: Path, supervised: Callable[..., subprocess.Popen[str]]
) -> None:
    program = supervised("fails")
    assert "The front could not be started." in program.communicate(timeout=TIMEOUT)[0]
    assert program.returncode == 1
    assert not any(map(alive, pids(tmp_path, "one")))


def test_the_front_starts_once_all_pages_accept_connections(
    tmp_path: Path, supervised: Callable[..., subprocess.Popen[str]]
) -> None:
    """Or all who come at the start would come to the first process, and stay there."""
    with ExitStack() as until:
        program = supervised("works", *reserve_ports(2, until))
        wait_for(lambda: program.poll() is not None or bool(pids(tmp_path, "front")))
        assert program.poll() is None
        program.terminate()
        assert program.communicate(timeout=TIMEOUT)[0].splitlines()[-1] == str(int(signal.SIGTERM))


def test_a_reserved_port_is_free_for_its_process_alone() -> None:
    with ExitStack() as until:
        (port,) = reserve_ports(1, until)
        with socket.socket() as server, socket.socket() as other:
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.bind(("127.0.0.1", port))
            server.listen()
            with pytest.raises(OSError, match="in use"):
                other.bind(("127.0.0.1", port))
