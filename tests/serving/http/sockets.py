"""A gate with an app behind it, and browsers' ends of its sockets: for the tests of what comes in by them."""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Coroutine
from dataclasses import replace
from functools import wraps
from typing import Any

from serving.http.access import Message, Refusals
from serving.http.websocket_gate import GateLimits, WebSocketGate

BOUNDS = GateLimits(sockets=4, sockets_an_address=2, silent_seconds=60, messages=1000, messages_an_address=10_000)
SLOW = replace(BOUNDS, messages=5)
GONE = {"type": "websocket.disconnect", "code": 1006}


class PlainQueue:
    """A message queue that keeps every message: b"page" asks for a page, b"bad" is none, b"drop" goes no further."""

    def __init__(self) -> None:
        self.waiting: deque[bytes] = deque()
        self.out: list[bytes] = []
        self.page_requested = False

    @property
    def waits(self) -> bool:
        return bool(self.waiting)

    def put(self, message: bytes) -> str | None:
        if message == b"bad":
            raise ValueError("no message")
        if message == b"drop":
            return "not-offered"
        self.page_requested = self.page_requested or message == b"page"
        self.waiting.append(message)
        return None

    def take(self) -> bytes | None:
        return self.waiting.popleft() if self.waiting else None

    def sent(self, message: bytes) -> None:
        self.out.append(message)

    def notice(self, sentence: str) -> bytes:
        return sentence.encode()


class Server:
    """A gate with an app behind it that takes down what each socket sends, and answers."""

    def __init__(self, bounds: GateLimits = BOUNDS) -> None:
        self.away: Counter[str] = Counter()
        self.received: dict[str, list[bytes]] = {}
        self.ended: list[str] = []
        refusals = Refusals("<{}>".format, lambda why: self.away.update([why]))
        self.gate = WebSocketGate(self._app, bounds, PlainQueue, refusals)

    async def _app(self, scope: Message, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            await send({"type": "http.response.start", "status": 200})
            return
        await receive()
        await send({"type": "websocket.accept"})
        name = scope["name"]
        while (message := await receive())["type"] == "websocket.receive":
            self.received.setdefault(name, []).append(message["bytes"])
            await send({"type": "websocket.send", "bytes": b"seen"})
        self.ended.append(name)


class Socket:
    """A browser's end."""

    def __init__(self, server: Server, name: str = "a", address: str = "10.0.0.1") -> None:
        self.coming: asyncio.Queue[Message] = asyncio.Queue()
        self.coming.put_nowait({"type": "websocket.connect"})
        self.got: list[Message] = []
        self.reads = asyncio.Event()
        self.reads.set()
        scope = {"type": "websocket", "client": (address, 1), "name": name}
        self.task = asyncio.create_task(server.gate(scope, self.coming.get, self._take))

    async def _take(self, message: Message) -> None:
        await self.reads.wait()
        self.got.append(message)

    def send(self, *messages: bytes) -> None:
        for message in messages:
            self.coming.put_nowait({"type": "websocket.receive", "bytes": message})

    def leave(self) -> None:
        self.coming.put_nowait(GONE)

    @property
    def kinds(self) -> list[str]:
        return [str(message["type"]) for message in self.got]


async def settled() -> None:
    for _ in range(50):
        await asyncio.sleep(0)


def asynchronous(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test in an event loop of its own."""

    @wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        asyncio.run(test(*args, **kwargs))

    return run
