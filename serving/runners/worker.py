"""A worker process with models of its own, started and ended by `serving.runners.worker_pool`; it talks over a pipe.

Sentences that arrive while others are translated are translated together, all in one batch.
"""

from __future__ import annotations

import os
import pickle
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from multiprocessing.connection import Connection
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

import torch

from serving.compute.cache import LRUCache
from serving.compute.slots import AbandonedError
from serving.models.model_registry import ModelRegistry
from serving.runners.model_server import ModelServer
from serving.runners.serialization import pack
from serving.settings import settings
from viz_core.runtime.interruption import interruptible

CANCEL = "cancel"
_BATCH = 16
_MOST_RESULTS = 512
_OTHERS = 2  # questions at once beside the sentences: a long one must not hold up the short ones


class Question(NamedTuple):
    """What is asked: a method of `ModelServer`, "outline", or CANCEL, which takes the question of this number back."""

    number: int
    name: str
    subject: Any = None
    args: tuple[Any, ...] = ()
    kwargs: dict[str, Any] = {}  # noqa: RUF012  # never written to


class Answer(NamedTuple):
    """What came of a question: a value, or what was raised."""

    number: int
    value: Any
    raised: bool = False


class Desk:
    """Answers questions as they come.

    Args:
        server: who knows the answers.
        send: takes each answer to whoever asked, from any thread.
    """

    def __init__(self, server: ModelServer, send: Callable[[Answer], None]) -> None:
        self._server, self._send = server, send
        self._taken_back: dict[int, threading.Event] = {}
        self._waiting: SimpleQueue[Question] = SimpleQueue()
        self._sentences, self._others = ThreadPoolExecutor(1), ThreadPoolExecutor(_OTHERS)

    def take(self, question: Question) -> None:
        """Have a question answered; the answer is sent."""
        if question.name == CANCEL:
            self._taken_back.get(question.number, threading.Event()).set()
            return
        self._taken_back[question.number] = threading.Event()
        if question.name == "outline" and question.subject.in_batches:
            self._waiting.put(question)
            self._sentences.submit(self._answer_all)
        else:
            self._others.submit(self._answer, question)

    def _answer_all(self) -> None:
        """All that wait, in one batch; nothing, where an earlier one took them along."""
        together: list[Question] = []
        with suppress(Empty):
            while len(together) < _BATCH:
                together.append(self._waiting.get_nowait())
        if together:
            self._work(together, lambda: self._server.outlines([one.subject for one in together]))

    def _answer(self, question: Question) -> None:
        self._work([question], lambda: [self._one(question)])

    def _one(self, question: Question) -> Any:
        if question.name == "outline":
            return self._server.outlines([question.subject])[0]
        if question.name not in ModelServer.questions:
            raise ValueError(f"question: expected one about a model or a run, got {question.name!r}")
        return getattr(self._server, question.name)(question.subject, *question.args, **question.kwargs)

    def _work(self, questions: list[Question], work: Callable[[], list[Any]]) -> None:
        """Do what several ask for, as long as one of them still wants it."""
        wanted = [self._taken_back[one.number] for one in questions]

        def check() -> None:
            if all(one.is_set() for one in wanted):
                raise AbandonedError(questions[0].name)

        try:
            with interruptible(check):
                found = work()
        except BaseException as error:  # a library's panic is no Exception, and whoever asked waits for an answer
            found = [error] * len(questions)
        for one, value in zip(questions, found, strict=True):
            del self._taken_back[one.number]
            self._send(Answer(one.number, value, isinstance(value, BaseException)))


def _packed(answer: Answer) -> bytes:
    """An answer as it crosses; what cannot cross is said in words."""
    try:
        packed = pack(answer)
        if answer.raised:
            pickle.loads(packed)  # an error of one's own may forget what it is made of
        return packed
    except Exception:
        error = RuntimeError(f"{type(answer.value).__name__}: {answer.value}")
        return pickle.dumps(Answer(answer.number, error, raised=True))


def serve(connection: Connection, server: ModelServer) -> None:
    """Answer what comes, until the other end is closed."""
    sending = threading.Lock()

    def send(answer: Answer) -> None:
        packed = _packed(answer)
        with sending, suppress(OSError):  # nobody is left to tell
            connection.send_bytes(packed)

    desk = Desk(server, send)
    with suppress(EOFError, OSError):
        while True:
            desk.take(pickle.loads(connection.recv_bytes()))


def main(end: int) -> None:
    """A worker's life, at its end of the pipe."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the server, and its end is ours
    torch.set_num_threads(1)
    kept = settings().cache_mb * 2**20 // max(1, settings().workers)
    serve(Connection(end), ModelServer(ModelRegistry(), LRUCache(_MOST_RESULTS, kept)))
    os._exit(0)  # whatever it is still at, nobody waits for it
