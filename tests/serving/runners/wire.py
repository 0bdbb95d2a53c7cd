"""The way to another machine, without one: all that crosses is pickled, and counted."""

from __future__ import annotations

import pickle
from typing import Any

from serving.compute.slots import BusyError
from serving.runners.model_server import ModelServer


class Wire:
    """Asks the server as a pool's front end asks a replica."""

    def __init__(self, server: ModelServer) -> None:
        self._server = server
        self.crossed: list[tuple[str, int]] = []  # question, and bytes of the answer
        self.refuses: set[str] = set()  # questions for which there is no room
        self.sent: list[tuple[str, int]] = []  # question, and bytes of what it is about

    def __call__(self, question: str, subject: Any, *args: Any, **kwargs: Any) -> Any:
        if question in self.refuses:
            raise BusyError(question)
        asked = pickle.dumps((subject, args, kwargs))
        self.sent.append((question, len(asked)))
        subject, args, kwargs = pickle.loads(asked)
        answer = pickle.dumps(self._answer(question, subject, *args, **kwargs))
        self.crossed.append((question, len(answer)))
        return pickle.loads(answer)

    def _answer(self, question: str, subject: Any, *args: Any, **kwargs: Any) -> Any:
        if question != "outline":
            assert question in ModelServer.questions
            return getattr(self._server, question)(subject, *args, **kwargs)
        [found] = self._server.outlines([subject])
        if isinstance(found, Exception):
            raise pickle.loads(pickle.dumps(found))
        return found
