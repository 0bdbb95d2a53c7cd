"""The cache of results, whose turn it is to compute, and turns of pages: one of each address at a time."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from serving.compute import slots as singletons
from serving.compute.cache import MISSING, LRUCache, footprint
from serving.compute.turns import Client, PageTurns, Spent, turns


def test_the_longest_unused_goes_first_by_number_and_by_bytes() -> None:
    cache = LRUCache(max_entries=2, max_bytes=10**6)
    cache.put("a", None)
    cache.put("b", 2)
    assert cache.get("a") is None  # used again, so b is the oldest
    cache.put("c", torch.zeros(100))
    cache.put("c", 3)
    assert cache.get("b") is MISSING
    assert (cache.get("a"), cache.get("c"), len(cache), cache.nbytes < 400) == (None, 3, 2, True)
    cache = LRUCache(max_entries=100, max_bytes=10_000)
    for number in range(10):
        cache.put(number, torch.zeros(1000))  # 4,000 bytes each
    assert (len(cache), cache.nbytes <= 10_000, cache.get(9) is MISSING) == (2, True, False)


def test_what_shares_its_tensors_is_counted_once_and_stays_together() -> None:
    """A recording and the maps made of it: were one to push the other out, both would be made at every click."""
    cache = LRUCache(max_entries=100, max_bytes=10_000)
    trace = torch.zeros(5_000)
    cache.put("run", {"trace": trace})
    cache.put("maps", [trace[:10], trace[10:]])
    assert cache.get("run") is not MISSING
    assert cache.get("maps") is not MISSING
    assert 20_000 < cache.nbytes < 21_000
    cache.put("other", 1)
    assert (len(cache), cache.nbytes < 1000) == (1, True)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9000)), max_size=60))
def test_the_sum_is_always_that_of_what_is_there(puts: list[tuple[int, int]]) -> None:
    cache = LRUCache(max_entries=4, max_bytes=5_000)
    last: dict[int, int] = {}
    for key, size in puts:
        cache.put(key, bytes(size))
        last[key] = size
        assert len(cache) <= 4
        assert cache.nbytes <= 5_000 or len(cache) == 1
    there = {key: cache.get(key) for key in range(10) if cache.get(key) is not MISSING}
    assert {key: len(value) for key, value in there.items()} == {key: last[key] for key in there}
    assert cache.nbytes == sum(footprint(key) + footprint(value) for key, value in there.items())


@pytest.mark.parametrize(
    ("value", "least", "most"),
    [
        (torch.zeros(1000)[:10], 4000, 4100),  # a view keeps all of it alive
        (Image.new("RGB", (100, 50)), 15_000, 15_100),
        ({"a": [torch.zeros(1000), torch.zeros(1000)]}, 8000, 8500),
    ],
)
def test_what_things_hold(value: object, least: int, most: int) -> None:
    assert least <= footprint(value) <= most


def test_many_who_ask_at_once_get_the_same_and_what_failed_is_tried_again() -> None:
    made: list[object] = []
    together = threading.Barrier(8)

    @singletons.singleton
    def thing() -> object:
        made.append(object())
        if len(made) == 1:
            raise ValueError("not yet")
        return made[-1]

    with pytest.raises(ValueError, match="not yet"):
        thing()

    def create(_number: int) -> object:
        together.wait(60)
        return thing()

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(create, range(8))) == {made[-1]}
    assert len(made) == 2


CROWD, NEWCOMER = Client("crowd", 1), Client("newcomer", 1)


def test_what_somebody_was_computed_for_is_half_forgotten_after_a_minute() -> None:
    spent = Spent()
    spent.add(CROWD, 8.0, 0.0)
    spent.add(Client("crowd", 2), 1.0, 60.0)
    assert [spent.of(who, 60.0) for who in ("crowd", CROWD, Client("crowd", 2), "nobody")] == [5.0, 4.0, 1.0, 0.0]
    assert spent.of("crowd", 180.0) == 1.25
    spent.add(NEWCOMER, 1.0, 3600.0)
    assert spent._seconds.keys() == {"newcomer", NEWCOMER}


def test_addresses_alternate_by_seconds_whatever_the_number_of_their_windows() -> None:
    waiting = [(f"c{n}", Client("crowd", n), 1.0) for n in range(4)]
    waiting += [("n0", Client("newcomer", 0), 2.0), ("n1", Client("newcomer", 0), 0.5)]
    # short first; then the crowd, 0 against 0.5 s; the newcomer, 0.5 against 1; and the crowd, 1 against 2.5
    assert [*turns(waiting, [], lambda _: 0.0)] == ["n1", "c0", "n0", "c1", "c2", "c3"]
    running = [(Client("crowd", 9), 5.0)]
    assert [*turns(waiting, running, lambda _: 0.0)][:2] == ["n1", "n0"]
    assert [*turns(waiting, [], lambda who: 9.0 if who == "newcomer" else 0.0)][:4] == ["c0", "c1", "c2", "c3"]


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
