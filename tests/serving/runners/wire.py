"""A connection to a model server without another process: all that is sent is pickled and counted."""

import pickle
from typing import Any

from serving.compute.slots import BusyError
from serving.runners.remote import ModelServer


class Wire:
    """Calls the server as a pool's front end calls a replica."""

    def __init__(self, server: ModelServer) -> None:
        self._server = server
        self.received: list[tuple[str, int]] = []  # method, and bytes of its result
        self.refuses: set[str] = set()  # methods that fail with BusyError
        self.sent: list[tuple[str, int]] = []  # method, and bytes of its arguments

    def __call__(self, method: str, subject: Any, *args: Any, **kwargs: Any) -> Any:
        if method in self.refuses:
            raise BusyError(method)
        sent = pickle.dumps((subject, args, kwargs))
        self.sent.append((method, len(sent)))
        subject, args, kwargs = pickle.loads(sent)
        result = pickle.dumps(self._call(method, subject, *args, **kwargs))
        self.received.append((method, len(result)))
        return pickle.loads(result)

    def _call(self, method: str, subject: Any, *args: Any, **kwargs: Any) -> Any:
        if method != "outline":
            assert method in ModelServer.methods
            return getattr(self._server, method)(subject, *args, **kwargs)
        [found] = self._server.outlines([subject])
        if isinstance(found, Exception):
            raise pickle.loads(pickle.dumps(found))
        return found
