"""The way to another machine, without one: all that crosses is pickled, and counted."""

from __future__ import annotations

import pickle
from typing import Any

from asking.runner import Here
from hosting.slots import BusyError


class Wire:
    """Asks `here` as a pool's front end asks a replica."""

    def __init__(self, here: Here) -> None:
        self._here = here
        self.crossed: list[tuple[str, int]] = []  # question, and bytes of the answer
        self.refuses: set[str] = set()  # questions for which there is no room
        self.sent: list[tuple[str, int]] = []  # question, and bytes of what it is about

    def __call__(self, question: str, subject: Any, *arguments: Any) -> Any:
        if question in self.refuses:
            raise BusyError(question)
        asked = pickle.dumps((subject, *arguments))
        self.sent.append((question, len(asked)))
        answer = pickle.dumps(self._answer(question, *pickle.loads(asked)))
        self.crossed.append((question, len(answer)))
        return pickle.loads(answer)

    def _answer(self, question: str, subject: Any, *arguments: Any) -> Any:
        if question != "outline":
            return getattr(self._here, question)(subject, *arguments)
        [found] = self._here.outlines([subject])
        if isinstance(found, Exception):
            raise pickle.loads(pickle.dumps(found))
        return found
