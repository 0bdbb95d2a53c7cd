"""A real uvicorn with these limits, in the test's own event loop; and limits that a test need not wait for."""

import asyncio
import socket
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import update_wrapper
from inspect import Signature, signature
from typing import Any

import pytest
import uvicorn

from serving.uvicorn_internals import limits as connections
from serving.uvicorn_internals.limits import HttpWithTimeouts, Limits, SocketWithLimits
from tests.serving.http.sockets import asynchronous

TIMEOUT = 60.0
LARGE = bytes(32 * 2**20)


async def app(scope: Any, receive: Any, send: Any) -> None:
    """Echoes messages, takes what is sent to it, and has much to read."""
    if scope["type"] == "websocket":
        await receive()
        if scope["path"] == "/refused":
            await send({"type": "websocket.http.response.start", "status": 403, "headers": []})
            await send({"type": "websocket.http.response.body", "body": b"no"})
            return
        elif scope["path"] == "/slow":
            await asyncio.sleep(0.05)
        await send({"type": "websocket.accept"})
        while (message := await receive())["type"] == "websocket.receive":
            data = LARGE if message["bytes"] == b"large" else message["bytes"]
            await send({"type": "websocket.send", "bytes": data})
    elif scope["type"] == "http":
        while (await receive()).get("more_body"):
            pass
        body = LARGE if scope["path"] == "/large" else b"ok"
        head = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": 200, "headers": head})
        await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def serving() -> AsyncIterator[tuple[uvicorn.Server, int]]:
    config = uvicorn.Config(
        app, http=HttpWithTimeouts, ws=SocketWithLimits, lifespan="off", log_level="critical", timeout_keep_alive=60
    )
    server = uvicorn.Server(config)
    listening = socket.create_server(("127.0.0.1", 0))
    task = asyncio.create_task(server.serve(sockets=[listening]))
    while not server.started:
        await asyncio.sleep(0.01)
    try:
        yield server, listening.getsockname()[1]
    finally:
        server.should_exit = server.force_exit = True
        await task


async def ended(server: uvicorn.Server) -> None:
    async with asyncio.timeout(TIMEOUT):
        while server.server_state.connections:
            await asyncio.sleep(0.01)


def on_a_server() -> Callable[[Callable[..., Awaitable[None]]], Callable[..., None]]:
    """Run a test, whose first arguments are the server and its port, in the event loop of a server."""

    def decorate(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
        @asynchronous
        async def run(*args: Any, **kwargs: Any) -> None:
            async with serving() as (server, port):
                await test(server, port, *args, **kwargs)

        fixtures = list(signature(test).parameters.values())[2:]
        update_wrapper(run, test).__signature__ = Signature(fixtures)  # type: ignore[attr-defined]
        return run

    return decorate


@pytest.fixture(autouse=True)
def short_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_INTERVAL", 0.05)
    monkeypatch.setattr(Limits, "head_seconds", 0.2)
    monkeypatch.setattr(Limits, "body_seconds", 0.3)
    monkeypatch.setattr(Limits, "slow_seconds", 0.2)
    monkeypatch.setattr(Limits, "message_bytes", 2**16)


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    reasons: Counter[str] = Counter()
    monkeypatch.setattr(Limits, "count", lambda why: reasons.update([why]))
    return reasons
