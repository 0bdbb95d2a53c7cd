"""One of a kind in a process, whoever asks first, and whatever Streamlit's caches are told."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import streamlit as st

from serving.compute import slots as singletons
from ui.compute import models
from ui.compute import slots as compute


def test_many_who_ask_at_once_get_the_same() -> None:
    made: list[object] = []
    together = threading.Barrier(8)

    @singletons.singleton
    def thing() -> object:
        made.append(object())
        return made[-1]

    def create(_number: int) -> object:
        together.wait(60)
        return thing()

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(create, range(8))) == set(made)
    assert len(made) == 1


def test_what_failed_is_tried_again() -> None:
    tries: list[int] = []

    @singletons.singleton
    def late() -> str:
        tries.append(1)
        if len(tries) == 1:
            raise ValueError("not yet")
        return "here"

    with pytest.raises(ValueError, match="not yet"):
        late()
    assert late() == late() == "here"
    assert len(tries) == 2


@pytest.mark.attack("messages")
def test_no_visitor_can_empty_them() -> None:
    """A message of Streamlit's protocol empties its caches, for all sessions."""
    before = [get() for get in (compute.metrics, compute.slots, compute.results, models.registry, models.runner)]
    threads = threading.active_count()
    for _ in range(3):
        st.cache_data.clear()
        st.cache_resource.clear()
    assert [
        get() for get in (compute.metrics, compute.slots, compute.results, models.registry, models.runner)
    ] == before
    assert threading.active_count() == threads
