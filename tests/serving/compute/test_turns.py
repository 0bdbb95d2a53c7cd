"""Turns by hand: addresses share seconds, windows share those of their address, and nobody is remembered for ever."""

from __future__ import annotations

import pytest

from serving.compute.turns import Client, Spent, Usual, turns

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


def test_windows_of_an_address_share_its_turns() -> None:
    waiting = [("a0", Client("a", 0), 1.0), ("a1", Client("a", 0), 1.0), ("b0", Client("a", 1), 1.0)]
    assert [*turns(waiting, [], lambda _: 0.0)] == ["a0", "b0", "a1"]
    assert [*turns(waiting, [], lambda who: 4.0 if who == Client("a", 0) else 0.0)] == ["b0", "a0", "a1"]


def test_the_mean_time_of_a_kind_follows_the_newest_and_old_kinds_are_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    usual = Usual()
    assert usual.of("long") is None
    usual.add("long", 8.0)
    usual.add("long", 4.0)
    assert usual.of("long") == 7.0
    monkeypatch.setattr("serving.compute.turns._MAX_KINDS", 2)
    for kind in ("short", "shorter"):
        usual.add(kind, 1.0)
    assert (usual.of("long"), usual.of("short")) == (None, 1.0)
