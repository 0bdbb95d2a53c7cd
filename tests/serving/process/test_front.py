"""The front's configuration, the processes behind it, and how each lives: health, readiness, metrics, a stop."""

import asyncio
import os
import re
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.applications import Starlette
from starlette.testclient import TestClient

from benchmarks.serving import free_port
from serving.compute.slots import BusyError, Slots
from serving.metrics import Metrics
from serving.process import lifecycle
from serving.process.front import configuration, find_haproxy
from serving.process.lifecycle import LoopMonitor, ServerLifecycle
from serving.process.supervisor import divided
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
    assert [line for line in made if line.startswith("server ")] == [
        "server pages-0 127.0.0.1:4001 cookie 0",
        "server pages-1 127.0.0.1:4002 cookie 1",
    ]
    assert {"option httpchk GET /healthz", "balance leastconn", "option redispatch 1", "timeout tunnel 1h"} <= {*made}


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


@pytest.mark.skipif(find_haproxy() is None, reason="no HAProxy here")
def test_haproxy_reads_it_without_a_warning(tmp_path: Path) -> None:
    (tmp_path / "haproxy.cfg").write_text(configuration(settings(), "::1", 8501, [4001, 4002], "none"))
    command = [str(find_haproxy()), "-c", "-f", str(tmp_path / "haproxy.cfg")]
    checked = subprocess.run(command, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    assert not re.search("WARNING|ALERT", checked.stderr), checked.stderr


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
import os, signal, sys, time
from functools import partial
from pathlib import Path
from serving.process.supervisor import supervise

folder = Path(sys.argv[1])

def work(name):
    signal.signal(signal.SIGTERM, lambda *_: ((folder / f"{name}.stopping").touch(), time.sleep(0.2), sys.exit()))
    (folder / f"{name}.{os.getpid()}").touch()
    time.sleep(600)

number = supervise(partial(work, "front"), [partial(work, "one")], {"models": partial(work, "models")}, 5)
print(int(number))
"""
NAMES = ("one", "models", "front")


def pids(folder: Path, name: str) -> list[int]:
    return [int(path.suffix[1:]) for path in folder.glob(f"{name}.[0-9]*")]


def wait_for(true: Callable[[], bool]) -> None:
    end = time.monotonic() + TIMEOUT
    while not true():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture
def supervised(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """The program, once all its processes are there; what it leaves behind is killed."""
    command = [sys.executable, "-c", PROGRAM, str(tmp_path)]
    program = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    wait_for(lambda: all(pids(tmp_path, name) for name in NAMES))
    yield program
    program.kill()
    for path in tmp_path.glob("*.[0-9]*"):  # or nobody would read the end of what they may still write
        with suppress(ProcessLookupError):
            os.kill(int(path.suffix[1:]), signal.SIGKILL)
    program.communicate()


@pytest.mark.attack("disorder")
@pytest.mark.parametrize("by", [signal.SIGTERM, signal.SIGKILL])
def test_what_ends_is_started_again_and_all_end_with_the_first_process(
    tmp_path: Path, supervised: subprocess.Popen[str], by: signal.Signals
) -> None:
    (first,) = pids(tmp_path, "one")
    os.kill(first, signal.SIGKILL)
    wait_for(lambda: len(pids(tmp_path, "one")) == 2)
    supervised.send_signal(by)
    if by == signal.SIGTERM:
        assert supervised.communicate(timeout=TIMEOUT)[0].splitlines()[-1] == str(int(by))
    supervised.wait(TIMEOUT)
    wait_for(lambda: all((tmp_path / f"{name}.stopping").exists() for name in NAMES))
    everyone = [pid for name in NAMES for pid in pids(tmp_path, name)]
    wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in everyone))


def test_a_delay_is_seen_while_it_lasts_and_the_longest_of_a_minute_afterwards() -> None:
    now = 0.0
    monitor = LoopMonitor(lambda: now)
    # How late the loop comes round each time, and the longest lag then.
    for lags, longest in (([0.0] * 3, 0), ([3.0, 0, 1, 0], 3), ([0.0] * 590, 1), ([0.0] * 40, 0)):
        for lag in lags:
            now += 0.1 + lag
            monitor.beat()
        assert monitor.longest_lag() == pytest.approx(longest, abs=1e-9)
    now += 5
    assert monitor.longest_lag() == monitor.busy_seconds() == pytest.approx(4.9)


def server(
    warm: Callable[[], object] = lambda: None,
    stop_seconds: float = TIMEOUT,
    address: str = "",
    first_pause: float = 5.0,
) -> tuple[ServerLifecycle, Slots, Metrics]:
    metrics = Metrics()
    slots = Slots(1, 4, TIMEOUT, metrics)
    metrics.watch_slots(slots.count)
    return ServerLifecycle(warm, lambda: slots, lambda: metrics, stop_seconds, first_pause, address), slots, metrics


@pytest.fixture
def stopped() -> Iterator[list[int]]:
    """Signals to stop that reach the server."""
    signals: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: signals.append(number))
    yield signals
    signal.signal(signal.SIGTERM, before)


def app(operations: ServerLifecycle) -> Starlette:
    return Starlette(routes=list(operations.routes()), lifespan=operations.lifespan)


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(TIMEOUT):
        while not true():
            await asyncio.sleep(0.01)


@pytest.mark.attack("disorder")
def test_what_could_not_be_loaded_is_tried_again_and_until_then_a_server_is_unready() -> None:
    """A pool of machines may come up after its front ends."""
    tries: list[int] = []
    go = threading.Event()

    def late() -> None:
        tries.append(len(tries))
        if len(tries) < 3 or not go.is_set():
            raise ValueError("no pool yet")

    operations, _, metrics = server(late, first_pause=0.001)
    with TestClient(app(operations)) as client:
        while not tries:
            pass
        assert [client.get(path).status_code for path in ("/readyz", "/healthz")] == [503, 200]
        go.set()
        while not operations.ready:
            pass
        assert client.get("/readyz").status_code == 200
        assert "atlas_ready 1.0" in metrics.text().decode()


def test_metrics_are_what_prometheus_reads() -> None:
    address = f"127.0.0.1:{free_port()}"
    operations, slots, metrics = server(address=address)
    metrics.watch_sessions(lambda: 7, lambda: 2048)
    metrics.watch_cache(lambda: (3, 12_345))
    metrics.count_failure("KeyError")
    slots.submit("translation", lambda: None).result()
    metrics.count_rejection("too-fast")
    with TestClient(app(operations)) as client:
        assert client.get("/metrics").status_code == 404, "visitors come to another port"
        with urllib.request.urlopen(f"http://{address}/metrics", timeout=TIMEOUT) as response:
            answer = response.read().decode()
            assert response.headers["content-type"].startswith("text/plain; version=")
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(answer)
        for sample in family.samples
    }
    expected = {("atlas_sessions",): 7, ("atlas_session_bytes",): 2048, ("atlas_turned_away_total", "too-fast"): 1}
    expected |= {("atlas_kept_results",): 3, ("atlas_kept_bytes",): 12_345, ("atlas_failures_total", "KeyError"): 1}
    expected |= {("atlas_computations_total", "translation", "done"): 1, ("atlas_running",): 0, ("atlas_waiting",): 0}
    assert {name: samples[name] for name in expected} == expected


@pytest.mark.attack("disorder")
def test_a_server_that_stops_finishes_what_it_has_begun(stopped: list[int]) -> None:
    """The first signal ends readiness; the server is told to stop only when nothing is at work any more."""
    operations, slots, _ = server()
    go, begun = threading.Event(), threading.Event()

    def work() -> str:
        begun.set()
        assert go.wait(TIMEOUT)
        return "finished"

    async def run() -> None:
        async with operations.lifespan(None):
            await until(lambda: operations.ready)
            job = slots.submit("work", work)
            assert begun.wait(TIMEOUT)
            waiting = slots.submit("next", lambda: "served")
            os.kill(os.getpid(), signal.SIGTERM)
            await until(lambda: not operations.ready)
            assert stopped == []
            go.set()
            await until(lambda: bool(stopped))
            assert (job.result(), waiting.result()) == ("finished", "served")

    asyncio.run(run())
    assert stopped == [signal.SIGTERM]
    with pytest.raises(BusyError):
        slots.submit("late", lambda: None)


@pytest.mark.attack("disorder")
def test_a_second_signal_stops_at_once(stopped: list[int]) -> None:
    operations, slots, _ = server(stop_seconds=2 * TIMEOUT)
    go = threading.Event()

    async def run() -> None:
        async with operations.lifespan(None):
            slots.submit("work", lambda: go.wait(TIMEOUT))
            os.kill(os.getpid(), signal.SIGTERM)
            await until(lambda: not operations.ready)
            os.kill(os.getpid(), signal.SIGTERM)
            await until(lambda: bool(stopped))
            go.set()

    asyncio.run(run())


def answer(url: str) -> tuple[int, str]:
    try:
        with urllib.request.urlopen(url, timeout=TIMEOUT) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.attack("connections")
def test_health_answers_while_the_event_loop_is_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    address = f"127.0.0.1:{free_port()}"
    operations, _, _ = server(address=address)

    async def run() -> tuple[list[tuple[int, str]], str]:
        async with operations.lifespan(None):
            while not operations.ready:
                await asyncio.sleep(0.01)
            with ThreadPoolExecutor(1) as client:
                busy = [client.submit(answer, f"http://{address}/healthz").result()]  # waits, and the loop with it
                monkeypatch.setattr(lifecycle, "_STUCK", 0.01)
                time.sleep(0.2)
                busy.append(client.submit(answer, f"http://{address}/healthz").result())
                return busy, client.submit(answer, f"http://{address}/metrics").result()[1]

    busy, text = asyncio.run(run())
    assert busy == [(200, "ok"), (503, "the event loop does not answer")]
    lag = next(line for line in text.splitlines() if line.startswith("atlas_event_loop_lag_seconds "))
    assert float(lag.split()[1]) >= 0.1
