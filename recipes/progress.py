"""Progress of long runs."""

from __future__ import annotations

import time


class Clock:
    """Seconds of work, going on from those of an earlier run, and how far along it is.

    Progress is the larger part done of two budgets: epochs, and minutes where a limit is set. A
    schedule that follows it comes to its end in time on any machine.
    """

    def __init__(self, epochs: int, minutes: float | None, elapsed: float = 0.0) -> None:
        self.epochs = epochs
        self.limit = minutes * 60 if minutes else None
        self._start = time.monotonic() - elapsed
        self._last_line = 0.0

    @property
    def elapsed(self) -> float:
        """Seconds of work, those of earlier runs included."""
        return time.monotonic() - self._start

    def progress(self, epochs_done: float) -> float:
        """0 at the start to 1 when either budget is spent."""
        by_time = self.elapsed / self.limit if self.limit else 0.0
        return min(1.0, max(epochs_done / self.epochs, by_time))

    @property
    def due(self) -> bool:
        """Whether the next line would be printed."""
        return self.elapsed - self._last_line >= 5

    def line(self, epochs_done: float, loss: float, per_second: float, unit: str = "tokens") -> None:
        """Print where training stands, at most every five seconds."""
        if not self.due:
            return
        self._last_line = self.elapsed
        progress = self.progress(epochs_done)
        left = self.elapsed * (1 - progress) / progress if progress > 0 else 0.0
        print(
            f"epoch {epochs_done:6.2f}  {progress:6.1%}  loss {loss:.3f}  {per_second:,.0f} {unit}/s  "
            f"{format_seconds(left)} left",
            flush=True,
        )


def format_seconds(seconds: float) -> str:
    """ "1:02:03" """
    minutes, second = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{second:02d}"
