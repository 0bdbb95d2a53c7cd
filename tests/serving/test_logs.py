"""Logs: one JSON object a line, and nothing of what a visitor typed, however an error quotes it."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator

import pytest

from serving.logs import configure_logging, log, where

SECRET = "my diagnosis is nobody's business"


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """What is logged while the test runs; afterwards logs are as they were."""
    factory, root = logging.getLogRecordFactory(), logging.getLogger()
    before = [(handler, handler.formatter) for handler in root.handlers]
    written = io.StringIO()
    handler = logging.StreamHandler(written)
    root.addHandler(handler)
    configure_logging()
    yield written
    root.removeHandler(handler)
    for old, formatter in before:
        old.setFormatter(formatter)
    logging.setLogRecordFactory(factory)


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def fail() -> None:
    raise ValueError(f"cannot read {SECRET}")


@pytest.mark.attack("logs")
def test_anyones_record_is_an_object_on_a_line_that_names_no_session(stream: io.StringIO) -> None:
    log.warning("ready", seconds=3.5)
    session = "00000000-0000-4000-8000-00000000beef"
    for message, value in (("port %d is\ntaken", 80), ("%d words", "many"), ("Session %s is connected!", session)):
        logging.getLogger("some.library").error(message, value)
    first, *others = lines(stream)
    assert (first["event"], first["seconds"], first["level"], first["logger"]) == ("ready", 3.5, "WARNING", "atlas")
    assert [line["event"] for line in others] == ["port 80 is\ntaken", "%d words", "Session (id) is connected!"]


@pytest.mark.attack("logs")
def test_an_error_is_told_by_type_and_place_alone(stream: io.StringIO) -> None:
    try:
        fail()
    except ValueError as error:
        logging.getLogger("some.page").error("Uncaught app execution", exc_info=error)
        logging.getLogger("any").exception("it failed: %s", error)
        first, second = where(error).split(" < ")[1:3]
        assert int(first.split(":")[1]) < int(second.split(":")[1]), "the innermost place first"
    written = lines(stream)
    assert len(written) == 2
    assert SECRET not in stream.getvalue()
    for line in written:
        assert str(line["error"]).startswith("ValueError < tests/serving/test_logs.py:")


@pytest.mark.attack("logs")
def test_both_ends_of_a_long_record_are_logged(stream: io.StringIO) -> None:
    logging.getLogger("any").warning("a disallowed origin: %s: refused", "x" * 20_000)
    event = str(lines(stream)[0]["event"])
    assert len(event) < 700
    assert event.startswith("a disallowed origin: xxx")
    assert event.endswith("xxx: refused")
