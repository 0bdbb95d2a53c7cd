"""Turns of pages: one page of each address at a time, and another one while it waits."""

import threading
import time

import pytest

from serving.compute.turns import PageTurns

TIMEOUT = 60.0  # a deadlock fails the test, and does not hang it


def test_pages_of_one_address_take_turns() -> None:
    pages, begun = PageTurns(), [threading.Event() for _ in range(3)]
    order: list[str] = []

    def page(name: str, address: str | None, started: threading.Event) -> threading.Thread:
        def run() -> None:
            with pages.turn(address), pages.turn(address):  # the second is a part of the first
                order.append(name)
                started.set()

        thread = threading.Thread(target=run)
        thread.start()
        return thread

    with pages.turn("first"):
        second = page("second of it", "first", begun[0])
        stranger = page("stranger", None, begun[1])
        assert begun[1].wait(TIMEOUT)
        stranger.join(TIMEOUT)
        assert order == ["stranger"]
        with pages.pause():  # it waits for a computation
            assert begun[0].wait(TIMEOUT)
            second.join(TIMEOUT)
        with pages.pause(), pages.pause(), pages.turn("first"):  # it takes its turn anew, for a part
            third = page("third of it", "first", begun[2])
            assert not begun[2].wait(0.05)
    assert begun[2].wait(TIMEOUT)
    third.join(TIMEOUT)
    assert order == ["stranger", "second of it", "third of it"]


def test_a_page_that_fails_ends_its_turn() -> None:
    pages, over = PageTurns(), threading.Event()
    with pytest.raises(ValueError, match="broken"), pages.turn("first"), pages.pause():
        raise ValueError("broken")

    def run() -> None:
        with pages.turn("first"):
            over.set()

    threading.Thread(target=run).start()
    assert over.wait(TIMEOUT)


def test_first_pages_alternate_with_those_that_waited_before() -> None:
    pages, order = PageTurns(), list[str]()
    threads = list[threading.Thread]()

    def wait(name: str) -> None:
        def run() -> None:
            with pages.turn("one address", name.startswith("newcomer")):
                order.append(name)

        threads.append(threading.Thread(target=run))
        threads[-1].start()
        while sum(map(len, turn._waiting.values())) < len(threads):
            time.sleep(0.001)

    with pages.turn("one address"):
        turn = pages._of["one address"]
        for name in ("answer 1", "answer 2", "newcomer 1", "newcomer 2", "newcomer 3"):
            wait(name)
    for thread in threads:
        thread.join(TIMEOUT)
    assert order == ["newcomer 1", "answer 1", "newcomer 2", "answer 2", "newcomer 3"]
