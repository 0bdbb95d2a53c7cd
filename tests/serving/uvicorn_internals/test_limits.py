"""Connections that send half of something, read nothing, or send too many frames, against a real uvicorn."""

from __future__ import annotations

import asyncio
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
from tests.serving.http.sockets import asynchronous
from tests.serving.uvicorn_internals.real_server import ended, on_a_server

pytestmark = pytest.mark.attack("connections")


HALVES = {
    "nothing at all": b"",
    "half a request line": b"GET / HT",
    "a request without its end": b"GET / HTTP/1.1\r\nHost: x\r\nX-Slow: ",
    "an upgrade without its end": b"GET /_stcore/stream HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Up",
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
    """A protocol whose looks are taken by hand."""
    protocol, wire = kind.__new__(kind), Wire()
    protocol.transport = wire
    wire.protocol = protocol
    return protocol, wire


@asynchronous
async def test_who_goes_on_asking_stays(counted: Counter[str]) -> None:
    protocol, wire = on_a_wire(HttpWithTimeouts)
    for _ in range(100):
        protocol.cycle = SimpleNamespace(response_complete=True, more_body=False)
        protocol._check_request()
    assert not wire.given_up
    for _ in range(5):
        protocol._check_request()
    assert wire.given_up
    assert counted == {"unfinished": 1}


@asynchronous
async def test_a_long_answer_is_no_half_request() -> None:
    protocol, wire = on_a_wire(HttpWithTimeouts)
    protocol.cycle = SimpleNamespace(response_complete=False, more_body=False)
    for _ in range(100):
        protocol._check_request()
    assert not wire.given_up


@pytest.mark.parametrize("kind", [HttpWithTimeouts, SocketWithLimits])
@asynchronous
async def test_who_reads_slowly_but_steadily_is_waited_for(
    kind: type, counted: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Limits, "slow_seconds", 1000.0)
    protocol, wire = on_a_wire(kind)
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


@pytest.mark.parametrize("size", [2**16 + 1, 2**22])
@on_a_server()
async def test_a_message_larger_than_any_page_sends_is_not_read(server: uvicorn.Server, port: int, size: int) -> None:
    async with connect(f"ws://127.0.0.1:{port}/", compression=None) as client:
        await client.send(b"small")
        assert await client.recv() == b"small"
        with suppress(ConnectionClosed):
            await client.send(bytes(size))
        with pytest.raises(ConnectionClosed, match="1009"):
            await client.recv()
    await ended(server)
