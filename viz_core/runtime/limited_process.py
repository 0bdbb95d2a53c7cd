"""Run a function on untrusted bytes in a process of its own, with limits of time, memory and output."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from typing import IO

from viz_core.runtime.hooks import may_end
from viz_core.runtime.refusal import RefusalError

_STEP = 0.5  # seconds between two checks whether the result is still needed
_REFUSED = 3  # exit status after a refusal, which is then the output
_START = "import sys; sys.path[:] = {path!r}; from viz_core.runtime.limited_process import main; main()"
_VARIABLES = ("PATH", "LD_LIBRARY_PATH", "SYSTEMROOT", "TMPDIR")
# Each thread reserves memory of its own.
_THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "RAYON_NUM_THREADS"), "1")


@dataclass(frozen=True)
class Limits:
    """Limits of a process; those of time and memory hold on systems that have them (POSIX)."""

    cpu_seconds: int = 5  # of the processor
    memory: int = 2**30  # bytes of address space, in which the interpreter needs about 100 MB
    output: int = 2**20  # bytes that may be returned, or written to any file
    seconds: float = 60.0  # on the clock, since a machine may be busy


class LimitError(Exception):
    """The process exceeded a limit, or crashed."""

    def __init__(self, function: str, status: int | None) -> None:
        super().__init__(f"{function}: exit status {status}")
        self.status = status  # negative after a signal, 1 after an exception, None after the time on the clock


def run_limited(
    function: Callable[..., bytes | Iterable[bytes]],
    content: bytes,
    arguments: Sequence[object] = (),
    limits: Limits = Limits(),
) -> bytes:
    """Return what `function(content, *arguments)` returns, or its parts joined, from a process with limits.

    RefusalError if the function raises one. LimitError if a limit is exceeded, or the function fails otherwise.

    Args:
        function: at the top level of a module; the process imports that module.
        arguments: numbers and strings.
    """
    path = [os.path.abspath(place) for place in sys.path]
    options = [f"{function.__module__}:{function.__qualname__}", json.dumps(list(arguments))]
    options += map(str, (limits.cpu_seconds, limits.memory, limits.output))
    with _memory_file() as given, _memory_file() as output:
        given.write(content)
        given.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-I", "-B", "-c", _START.format(path=path), *options],
            stdin=given,
            stdout=output,
            stderr=subprocess.DEVNULL,
            cwd=os.path.abspath(os.sep),
            env={name: os.environ[name] for name in _VARIABLES if name in os.environ} | _THREADS,
        )
        try:
            status = _wait(process, limits.seconds)
        finally:
            process.kill()
            process.wait()
        output.seek(0)
        returned = output.read(limits.output)
    if status == _REFUSED:
        with suppress(ValueError, TypeError, KeyError, IndexError, AttributeError):
            sentence, values = json.loads(returned)
            raise RefusalError(sentence, **{n: tuple(v) if isinstance(v, list) else v for n, v in values.items()})
    if status != 0:
        raise LimitError(function.__qualname__, status)
    return returned


def _wait(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    """The exit status, or None after so many seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(_STEP)
        may_end()
    return None


def _memory_file() -> IO[bytes]:
    """A file without a name: where the system has it in memory, so that a full disk stops nobody."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("limited"), "w+b")
    return tempfile.TemporaryFile()


def main() -> None:
    """Run the function of the command line on standard input; the limits hold before its module is imported."""
    name, arguments, *limits = sys.argv[1:]
    _limit(*map(int, limits))
    module, _, function = name.partition(":")
    output = sys.stdout.buffer
    try:
        made = getattr(import_module(module), function)(sys.stdin.buffer.read(), *json.loads(arguments))
        for part in [made] if isinstance(made, bytes) else made:
            output.write(part)
    except RefusalError as refusal:
        output.seek(0)
        output.truncate()
        output.write(json.dumps([refusal.sentence, refusal.values], default=str).encode())
        output.flush()
        os._exit(_REFUSED)
    except MemoryError:
        os.abort()
    output.flush()
    os._exit(0)  # without the interpreter's last steps


def _limit(cpu_seconds: int, memory: int, output: int) -> None:
    try:
        import resource
    except ImportError:  # Windows: only the clock is a limit
        return
    for limit, most in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_FSIZE, output),
        (resource.RLIMIT_AS, memory),
    ):
        with suppress(ValueError, OSError):  # macOS takes no limit of the address space
            resource.setrlimit(limit, (most, most))
