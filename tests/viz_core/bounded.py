"""What a file takes that was made to harm: the processor's time and the memory of the process while it is judged."""

import os
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
