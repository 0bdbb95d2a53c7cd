"""Limits of web sockets: floods of frames, fragments, and handshakes that are none."""

from __future__ import annotations

import asyncio
import logging
import os
from collections import Counter

import pytest
import uvicorn
from websockets.asyncio.client import connect

from serving.uvicorn_internals.limits import Limits, SocketWithLimits
from tests.serving.uvicorn_internals.real_server import TIMEOUT, ended, on_a_server

BINARY, PING, PONG = 2, 9, 10
HANDSHAKE = (
    "GET {} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n{}\r\n"
)


def frame(opcode: int, data: bytes = b"", last: bool = True) -> bytes:
    """A frame of a client: masked, here with zeros."""
    assert len(data) < 126
    return bytes([opcode | (0x80 if last else 0), 0x80 | len(data)]) + bytes(4) + data


async def shaking(port: int, headers: str = "", path: str = "/") -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """A connection that has sent a handshake."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(HANDSHAKE.format(path, headers).encode())
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
