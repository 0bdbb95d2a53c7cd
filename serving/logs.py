"""Structured logs: one JSON object a line, without anything that a visitor typed or that names a session.

An error is logged as its type and the places it was raised at, because its message may quote a visitor's text. Session
ids, with which a session could be taken over, are left out of whatever a library logs, and long records are cut off.
"""

import logging
import re
import traceback
import warnings
from pathlib import Path
from typing import Any

import structlog

FORMAT = "%(message)s"
"""Format of every handler; also in hosted.toml, for loggers that Streamlit creates later."""

_ROOT = Path(__file__).resolve().parents[1]
_FRAMES = 6  # of a traceback
_MAX_CHARACTERS = 600  # of a message, half of them from its end: uvicorn logs whole tracebacks
_SESSION_ID = re.compile(r"\b[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")
_stamp = structlog.processors.TimeStamper(fmt="%Y-%m-%dT%H:%M:%S%z", utc=False, key="time")
_render = structlog.processors.JSONRenderer(default=str)

# Records carry the event as it is; the record factory below renders it.
log = structlog.wrap_logger(
    logging.getLogger("atlas"),
    processors=[lambda _logger, _method, event: ((event if len(event) > 1 else event["event"],), {})],
    wrapper_class=structlog.stdlib.BoundLogger,
)


def configure_logging() -> None:
    """Render every log record of this process, from any library, as one line of JSON.

    Records are rendered when they are created, not by a formatter: Streamlit gives its loggers handlers of its own.
    """
    create = logging.getLogRecordFactory()

    def factory(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = create(*args, **kwargs)
        record.msg, record.args = _line(record), None
        record.exc_info, record.exc_text, record.stack_info = None, None, None
        return record

    logging.setLogRecordFactory(factory)
    warnings.showwarning = _log_warning  # type: ignore[assignment]
    logging.basicConfig(level=logging.WARNING, format=FORMAT)
    log.setLevel(logging.INFO)
    reset_formatters()


def _log_warning(_message: object, category: type[Warning], filename: str, lineno: int, *_: object) -> None:
    """Log a warning of Python by its kind and place: its text may name a folder of this machine."""
    log.warning("warning", category=category.__name__, place=_place(traceback.FrameSummary(filename, lineno, "")))


def reset_formatters() -> None:
    """Give every existing handler the plain format."""
    loggers = [logging.getLogger(), *map(logging.getLogger, list(logging.root.manager.loggerDict))]
    for handler in {handler for logger in loggers for handler in logger.handlers}:
        handler.setFormatter(logging.Formatter(FORMAT))


def where(error: BaseException) -> str:
    """Return an error's type and the innermost places of its traceback, without its message."""
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    return " < ".join([type(error).__name__, *(_place(frame) for frame in reversed(frames))])


def _line(record: logging.LogRecord) -> str:
    event = dict(record.msg) if isinstance(record.msg, dict) else {"event": _message(record)}
    event = {"level": record.levelname, "logger": record.name} | event
    if record.exc_info and record.exc_info[1] is not None:
        event["error"] = where(record.exc_info[1])
    return str(_render(None, "", _stamp(None, "", event)))


def _message(record: logging.LogRecord) -> str:
    text = _SESSION_ID.sub("(id)", _quoted(record))
    half = _MAX_CHARACTERS // 2
    return text if len(text) <= _MAX_CHARACTERS else f"{text[:half]} … {text[-half:]}"


def _quoted(record: logging.LogRecord) -> str:
    """The message; with an error in the record only its template, since the arguments may quote the error."""
    has_error = bool(record.exc_info) or any(isinstance(one, BaseException) for one in record.args or ())
    try:
        return str(record.msg) if has_error else record.getMessage()
    except (TypeError, ValueError):
        return str(record.msg)


def _place(frame: traceback.FrameSummary) -> str:
    path = Path(frame.filename)
    name = path.relative_to(_ROOT) if path.is_relative_to(_ROOT) else path.name
    return f"{name}:{frame.lineno}"
