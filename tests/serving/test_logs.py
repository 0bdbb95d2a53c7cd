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


def test_an_event_is_an_object_on_a_line(stream: io.StringIO) -> None:
    log.warning("ready", seconds=3.5)
    (line,) = lines(stream)
    assert (line["event"], line["seconds"], line["level"], line["logger"]) == ("ready", 3.5, "WARNING", "atlas")


def test_anyones_records_are_written_so(stream: io.StringIO) -> None:
    logging.getLogger("some.library").error("port %d is\ntaken", 80)
    assert [line["event"] for line in lines(stream)] == ["port 80 is\ntaken"]


@pytest.mark.attack("logs")
def test_an_error_is_told_by_type_and_place_alone(stream: io.StringIO) -> None:
    try:
        fail()
    except ValueError as error:
        logging.getLogger("some.page").error("Uncaught app execution", exc_info=error)
        logging.getLogger("any").exception("it failed: %s", error)
    written = lines(stream)
    assert len(written) == 2
    assert SECRET not in stream.getvalue()
    for line in written:
        assert str(line["error"]).startswith("ValueError < tests/serving/test_logs.py:")


def test_where_names_the_innermost_place_first() -> None:
    with pytest.raises(ValueError, match="cannot read") as caught:
        fail()
    first, second = where(caught.value).split(" < ")[1:3]
    assert first.startswith("tests/serving/test_logs.py:")
    assert int(first.split(":")[1]) < int(second.split(":")[1])
    assert SECRET not in where(caught.value)


@pytest.mark.attack("logs")
def test_a_record_that_cannot_be_put_together_is_told_anyhow(stream: io.StringIO) -> None:
    logging.getLogger("any").warning("%d words", "many")
    assert [line["event"] for line in lines(stream)] == ["%d words"]


@pytest.mark.attack("logs")
def test_no_session_is_named(stream: io.StringIO) -> None:
    session = "00000000-0000-4000-8000-00000000beef"
    logging.getLogger("any").warning("Session with id %s is already connected!", session)
    assert [line["event"] for line in lines(stream)] == ["Session with id (id) is already connected!"]


@pytest.mark.attack("logs")
def test_both_ends_of_a_long_record_are_logged(stream: io.StringIO) -> None:
    logging.getLogger("any").warning("a disallowed origin: %s: refused", "x" * 20_000)
    event = str(lines(stream)[0]["event"])
    assert len(event) < 700
    assert event.startswith("a disallowed origin: xxx")
    assert event.endswith("xxx: refused")
