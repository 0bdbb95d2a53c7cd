"""Limits of connections and sockets, on real servers."""

import asyncio
import logging
import socket
from collections import Counter
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from serving.uvicorn_internals.limits import HttpWithTimeouts, Limits, SocketWithLimits
from tests.attacks.over_http import BINARY, PING, PONG, frame, handshake
from tests.serving.http.sockets import asynchronous
from tests.serving.uvicorn_internals.conftest import TIMEOUT, ended, on_a_server

HALVES = {
    "nothing at all": b"",
    "half a request line": b"GET / HT",
    "a request without its end": b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ",
    "a request without its body": b"PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\nab",
    "a second request without its end": b"GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /",
}


@pytest.mark.parametrize("sent", HALVES.values(), ids=list(HALVES))
@on_a_server()
async def test_half_a_request_ends(server: uvicorn.Server, port: int, sent: bytes) -> None:
    for _ in range(20):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(sent)
    await asyncio.sleep(0)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    assert (await reader.read()).endswith(b"ok"), "a newcomer is served meanwhile"
    await ended(server)


class Wire:
    """A connection with so many bytes on their way, which tells whether it was given up."""

    def __init__(self) -> None:
        self.left = 0
        self.given_up = False
        self.protocol: object = None

    def get_write_buffer_size(self) -> int:
        return self.left

    def get_protocol(self) -> object:
        return self.protocol

    def is_closing(self) -> bool:
        return self.given_up

    def abort(self) -> None:
        self.given_up = True


def on_a_wire(kind: type) -> tuple[Any, Wire]:
    protocol, wire = kind.__new__(kind), Wire()
    protocol.transport = wire
    wire.protocol = protocol
    return protocol, wire


@asynchronous
async def test_who_goes_on_asking_or_waits_for_a_long_answer_stays(counted: Counter[str]) -> None:
    protocol, wire = on_a_wire(HttpWithTimeouts)
    protocol.cycle = SimpleNamespace(response_complete=False, more_body=False)
    for _ in range(100):
        protocol._check_request()
    assert not wire.given_up, "a long answer is no half request"
    for _ in range(100):
        protocol.cycle = SimpleNamespace(response_complete=True, more_body=False)
        protocol._check_request()
    assert not wire.given_up
    for _ in range(5):
        protocol._check_request()
    assert wire.given_up
    assert counted == {"unfinished": 1}


@asynchronous
async def test_who_reads_slowly_but_steadily_is_waited_for(
    counted: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Limits, "slow_seconds", 1000.0)
    protocol, wire = on_a_wire(SocketWithLimits)
    protocol._left = wire.left = 10 * 2**20
    for _ in range(5):
        wire.left -= 1024 * 1000
        protocol._check_reader()
    assert (wire.given_up, counted) == (False, {})
    wire.left -= 1024 * 1000 - 1
    protocol._check_reader()
    assert (wire.given_up, counted) == (True, {"unread": 1})


def slow_socket(port: int, sent: bytes) -> socket.socket:
    """One that reads nothing, with as little room on its way as the system allows."""
    slow = socket.socket()
    slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    slow.connect(("127.0.0.1", port))
    slow.sendall(sent)
    return slow


@on_a_server()
async def test_an_answer_that_nobody_reads_is_given_up(server: uvicorn.Server, port: int) -> None:
    readers = [slow_socket(port, b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n") for _ in range(2)]
    await asyncio.sleep(0.05)
    await ended(server)
    for reader in readers:
        reader.close()


@on_a_server()
async def test_a_message_that_nobody_reads_is_given_up(server: uvicorn.Server, port: int) -> None:
    address = f"ws://127.0.0.1:{port}/"
    async with connect(address, max_size=None, max_queue=1, compression=None, close_timeout=0.1) as client:
        client.transport.pause_reading()
        await client.send(b"large")
        await asyncio.sleep(0.05)
        await ended(server)


@on_a_server()
async def test_a_message_larger_than_any_page_sends_is_not_read(server: uvicorn.Server, port: int) -> None:
    async with connect(f"ws://127.0.0.1:{port}/", compression=None) as client:
        await client.send(b"small")
        assert await client.recv() == b"small"
        with suppress(ConnectionClosed):
            await client.send(bytes(2**16 + 1))
        with pytest.raises(ConnectionClosed, match="1009"):
            await client.recv()
    await ended(server)


async def shaking(port: int, headers: str = "", path: str = "/") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection that has sent a handshake."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(handshake(path, "x", headers))
    return reader, writer


async def opened(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await shaking(port)
    assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
    return reader, writer


FLOODS = {"pings": frame(PING) * 100_000, "pongs": frame(PONG) * 100_000, "empty messages": frame(BINARY) * 100_000}


@pytest.mark.parametrize("flood", FLOODS.values(), ids=list(FLOODS))
@on_a_server()
async def test_a_flood_of_frames_is_read_at_a_rate(
    server: uvicorn.Server, port: int, flood: bytes, counted: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Megabytes are sent, a few kilobytes are taken, and somebody else is answered."""
    monkeypatch.setattr(Limits, "frames", 50.0)
    _, writer = await opened(port)
    writer.write(flood)
    await asyncio.sleep(0)
    async with connect(f"ws://127.0.0.1:{port}/") as other:
        for number in range(20):
            await other.send(str(number).encode())
            assert await other.recv() == str(number).encode()
    (flooded,) = [each for each in server.server_state.connections if each.client[1] == _port(writer)]
    assert flooded._frames < 1000
    assert len(flooded._unparsed) < 2**20
    assert counted == {"too-fast": 1}
    writer.transport.abort()


def _port(writer: asyncio.StreamWriter) -> int:
    return int(writer.get_extra_info("sockname")[1])


@on_a_server()
async def test_a_flood_over_many_sockets_of_one_address_is_read_at_the_rate_of_one(
    server: uvicorn.Server, port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Limits, "frames_an_address", 60.0)
    writers = [(await opened(port))[1] for _ in range(10)]
    for writer in writers:
        writer.write(frame(PING) * 10_000)
    await asyncio.sleep(0.2)
    assert sum(each._frames for each in server.server_state.connections) < 10 * 200
    for writer in writers:
        writer.transport.abort()


@on_a_server()
async def test_a_flood_that_does_not_end_closes_its_socket(
    server: uvicorn.Server, port: int, counted: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Limits, "flood_seconds", 0.01)
    monkeypatch.setattr(Limits, "frames", 2000.0)
    reader, writer = await opened(port)
    writer.write(frame(PONG) * 5000)
    async with asyncio.timeout(TIMEOUT):
        assert await reader.read() == b"\x88\x11\x03\xf0too many frames"
    assert counted == {"too-fast": 1, "flood": 1}
    await ended(server)


@on_a_server()
async def test_a_message_in_too_many_fragments_closes_its_socket(
    server: uvicorn.Server, port: int, counted: Counter[str]
) -> None:
    reader, writer = await opened(port)
    writer.write(frame(BINARY, last=False) + frame(0, last=False) * 300)
    async with asyncio.timeout(TIMEOUT):
        answer = await reader.read()
    assert answer == b"\x88\x14\x03\xf0too many fragments"
    assert counted["fragments"] == 1
    await ended(server)


@on_a_server()
async def test_messages_that_are_sent_before_the_handshake_is_answered_are_not_lost(
    server: uvicorn.Server, port: int
) -> None:
    reader, writer = await shaking(port, path="/slow")
    while not any(isinstance(each, SocketWithLimits) for each in server.server_state.connections):
        await asyncio.sleep(0)
    writer.write(frame(PING, b"early") + frame(BINARY, b"hello"))
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101")
    async with asyncio.timeout(TIMEOUT):
        assert await reader.readexactly(14) == b"\x8a\x05early\x82\x05hello"
    writer.close()
    await ended(server)


ODD = {
    "an Origin of 20 kB": (f"Origin: {'x' * 20_000}\r\n", b" 431 "),
    "200 headers": ("".join(f"X-{number}: 1\r\n" for number in range(200)), b" 431 "),
    "a body": ("Content-Length: 5\r\n", b" 400 "),
}


@pytest.mark.parametrize(("headers", "status"), ODD.values(), ids=list(ODD))
@on_a_server()
async def test_a_handshake_that_is_none_is_answered_closed_and_counted(
    server: uvicorn.Server, port: int, headers: str, status: bytes, counted: Counter[str]
) -> None:
    for _ in range(20):
        reader, _writer = await shaking(port, headers)
        async with asyncio.timeout(TIMEOUT):
            assert status in (await reader.read()).partition(b"\r\n")[0]
    assert counted == {"handshake": 20}
    await ended(server)


@on_a_server()
async def test_a_handshake_that_the_app_refuses_is_no_error(
    server: uvicorn.Server, port: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Or a stranger could fill the log."""
    errors = logging.getLogger("uvicorn.error")
    errors.setLevel(logging.ERROR)  # the server has configured it
    errors.addHandler(caplog.handler)
    reader, _writer = await shaking(port, path="/refused")
    assert b" 403 " in (await reader.read()).partition(b"\r\n")[0]
    await ended(server)
    errors.removeHandler(caplog.handler)
    assert [record.message for record in caplog.records] == []
