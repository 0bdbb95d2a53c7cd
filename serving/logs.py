"""Structured logs, one JSON object a line, in which nothing that a visitor typed can stand.

What goes wrong is told by the error's type and by where it was raised: its message may quote a text.
"""

from __future__ import annotations

import json
import logging
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FORMAT = "%(message)s"
"""All that a formatter has to write: also in hosted.toml, for loggers that Streamlit makes later."""

_ROOT = Path(__file__).resolve().parents[1]
_FRAMES = 6  # of the place where an error was raised

log = logging.getLogger("atlas")


def structured_logs() -> None:
    """From now on every record of this process, whoever makes it, is a line without content."""
    make = logging.getLogRecordFactory()

    def factory(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = make(*args, **kwargs)
        record.msg, record.args = _line(record), None
        record.exc_info, record.exc_text, record.stack_info = None, None, None
        return record

    logging.setLogRecordFactory(factory)
    logging.basicConfig(level=logging.WARNING, format=FORMAT)
    log.setLevel(logging.INFO)
    reformat()


def reformat() -> None:
    """Give every handler there is by now the format."""
    loggers = [logging.getLogger(), *map(logging.getLogger, list(logging.root.manager.loggerDict))]
    for handler in {handler for logger in loggers for handler in logger.handlers}:
        handler.setFormatter(logging.Formatter(FORMAT))


def where(error: BaseException) -> str:
    """The type of an error and the last places it came through, without its message."""
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    return " < ".join([type(error).__name__, *(_place(frame) for frame in reversed(frames))])


def _line(record: logging.LogRecord) -> str:
    told: dict[str, Any] = {
        "time": logging.Formatter().formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
        "level": record.levelname,
        "logger": record.name,
    }
    if isinstance(record.args, Mapping):  # log.info("ready", {"seconds": 3})
        told |= {"event": record.msg, **record.args}
    else:
        told["event"] = _message(record)
    if record.exc_info and record.exc_info[1] is not None:
        told["error"] = where(record.exc_info[1])
    return json.dumps(told, default=str)


def _message(record: logging.LogRecord) -> str:
    """What was said; where an error is told with it, only the sentence around, for arguments may quote its message."""
    error_told = bool(record.exc_info) or any(isinstance(one, BaseException) for one in record.args or ())
    try:
        return str(record.msg) if error_told else record.getMessage()
    except (TypeError, ValueError):
        return str(record.msg)


def _place(frame: traceback.FrameSummary) -> str:
    path = Path(frame.filename)
    name = path.relative_to(_ROOT) if path.is_relative_to(_ROOT) else path.name
    return f"{name}:{frame.lineno}"
