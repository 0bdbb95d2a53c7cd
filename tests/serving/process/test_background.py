"""Background work does not delay the start of the server, and its errors do not end it."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from serving.process import background
from serving.process.background import background_lifespan, start_background_work


def test_the_server_is_up_while_the_work_goes_on_and_after_it_failed(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "_started", threading.Event())  # pages of other tests have been served already
    up, done = threading.Event(), threading.Event()

    def work() -> None:
        assert up.wait(60)
        done.set()
        raise ValueError("nothing to import")

    async def serve() -> None:
        async with background_lifespan(work, timeout=60)(None):
            assert not done.is_set()
            up.set()
            assert not done.wait(0.1)  # no visitor has come yet
            start_background_work()
            for thread in threading.enumerate():
                if thread.name == "background":
                    thread.join(60)

    with caplog.at_level(logging.WARNING, logger="atlas"):
        asyncio.run(serve())
    assert done.is_set()
    assert [record.msg["event"] for record in caplog.records] == ["background work failed"]
