"""Limits of connections and sockets, on real servers."""

import asyncio
import logging
import os
import socket
from collections import Counter
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
import uvicorn
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed

from serving.uvicorn_internals.limits import CombinedWrites, HttpWithTimeouts, Limits, SocketWithLimits
from tests.attacks.over_http import BINARY, PING, PONG, frame, handshake
from tests.serving.http.sockets import asynchronous
from tests.serving.uvicorn_internals.conftest import TIMEOUT, ended, on_a_server

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


async def shaking(port: int, headers: str = "", path: str = "/") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection that has sent a handshake."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(handshake(path, "x", headers))
    return reader, writer


async def opened(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await shaking(port)
    assert b" 101 " in await reader.readuntil(b"\r\n\r\n")
    return reader, writer


FLOODS = {
    "pings": frame(PING) * 100_000,
    "pongs": frame(PONG) * 100_000,
    "empty fragments": frame(BINARY, last=False) + frame(0, last=False) * 200 + frame(PING) * 100_000,
    "empty messages": frame(BINARY) * 100_000,
}


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
async def test_a_message_in_fragments_arrives_whole_though_it_is_slow(server: uvicorn.Server, port: int) -> None:
    data = os.urandom(50_000)
    async with connect(f"ws://127.0.0.1:{port}/", compression=None) as client:
        for _ in range(3):
            await client.send([data[start : start + 500] for start in range(0, len(data), 500)])
            assert await client.recv() == data
            await client.ping()
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
async def test_a_handshake_that_the_app_does_not_answer_ends_in_time(
    server: uvicorn.Server, port: int, counted: Counter[str]
) -> None:
    _, _writer = await shaking(port, path="/silent")
    await asyncio.sleep(0.05)
    await ended(server)
    assert counted == {"unfinished": 1}


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


@on_a_server(host="::")
async def test_a_socket_on_ipv6_sees_an_address_of_ipv4(server: uvicorn.Server, port: int) -> None:
    _, writer = await opened(port)
    (connection,) = server.server_state.connections
    assert connection.client[0] == "127.0.0.1"
    writer.transport.abort()
    await ended(server)


class Written(asyncio.Transport):
    """Where a page's messages go."""

    def __init__(self) -> None:
        super().__init__()
        self.pieces: list[bytes] = []
        self.write, self.close = self.pieces.append, lambda: self.pieces.append(b"closed")  # type: ignore[method-assign]
        self.is_closing, self.get_write_buffer_size = lambda: b"closed" in self.pieces, int  # type: ignore[method-assign]


@asynchronous
async def test_messages_of_a_moment_go_out_in_one_piece_and_before_the_end() -> None:
    written = Written()
    together = CombinedWrites(written)
    for data in (b"a", b"b", b"c"):
        together.write(data)
    assert (written.pieces, together.get_write_buffer_size()) == ([], 3)
    while not written.pieces:
        await asyncio.sleep(0)
    assert written.pieces == [b"abc"]
    large = bytes(2**16)
    together.write(large)
    assert written.pieces[1:] == [large], "a large one does not wait"
    together.write(b"d")
    together.close()
    together.write(b"e")
    together.flush()
    assert written.pieces[2:] == [b"d", b"closed"]
