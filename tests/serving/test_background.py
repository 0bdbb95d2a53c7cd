"""Work in the background: the server is up meanwhile, whatever becomes of it."""

from __future__ import annotations

import asyncio
import logging
import threading

import pytest

from serving.process import background
from serving.process.background import begin, in_background


def test_the_server_is_up_while_the_work_goes_on_and_after_it_failed(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(background, "_begun", threading.Event())  # pages of other tests have been served already
    up, done = threading.Event(), threading.Event()

    def work() -> None:
        assert up.wait(60)
        done.set()
        raise ValueError("nothing to import")

    async def serve() -> None:
        async with in_background(work, patience=60)(None):
            assert not done.is_set()
            up.set()
            assert not done.wait(0.1)  # nobody has come yet
            begin()
            for thread in threading.enumerate():
                if thread.name == "background":
                    thread.join(60)

    with caplog.at_level(logging.WARNING, logger="atlas"):
        asyncio.run(serve())
    assert done.is_set()
    assert [record.getMessage() for record in caplog.records] == ["what was begun in the background failed"]
