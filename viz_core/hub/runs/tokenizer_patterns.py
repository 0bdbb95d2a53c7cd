"""Test a tokenizer's patterns for catastrophic backtracking before they are used.

The library that matches them lets no other thread run meanwhile and cannot be interrupted; so they are tried in a
process of their own, whose processor's time is bounded. Backtracking over (a+)+ doubles with every letter, over a*a*
it grows with the square of the text (Davis and others 2018, "The impact of regular expression denial of service").
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from viz_core.hub.store.errors import HubError

_LENGTH = 2000  # characters of a trial: a million steps for what grows with the square of it
_SECONDS = 1  # of the processor, for all trials of a tokenizer
_TIMEOUT = 60.0  # seconds on the clock: a machine may be busy
_UNITS = ("a", "A", "1", " ", "\n", "a ", "a1", "é", "'s", ".", "_", "aA")
_NAMED = 40  # words and signs
_ENDS = ("", "!", "\0")

# Run by an interpreter of its own, which knows nothing of the Atlas.
_TRIAL = """
import json, sys
try:
    import resource
    seconds = int(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
except ImportError:
    pass  # a system without such limits: the caller has a timeout
from tokenizers import Regex, pre_tokenizers
patterns, texts = json.load(sys.stdin)
for pattern in patterns:
    split = pre_tokenizers.Split(Regex(pattern), "isolated")
    for text in texts:
        split.pre_tokenize_str(text)
"""


def costly(tokenizer: Any) -> bool:
    """Whether a loaded tokenizer has patterns that are invalid or may not end; a slow tokenizer has none."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    parts = [getattr(backend, name, None) for name in ("normalizer", "pre_tokenizer", "decoder")]
    found = {pattern for part in parts if part is not None for pattern in _patterns(json.loads(part.__getstate__()))}
    try:
        return bool(found) and not _come_to_an_end(tuple(sorted(found)))
    except subprocess.TimeoutExpired:
        return True


@contextmanager
def panics_in_words(refusal: HubError) -> Iterator[None]:
    """Raise `error` where the library panics over a pattern, which is no Exception."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # pyo3's; it cannot be imported
            raise
        raise refusal from None


@lru_cache(maxsize=256)
def _come_to_an_end(patterns: tuple[str, ...]) -> bool:
    tried = subprocess.run(
        [sys.executable, "-c", _TRIAL, str(_SECONDS)],
        input=json.dumps([patterns, list(_texts(patterns))]).encode(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        timeout=_TIMEOUT,
        check=False,
    )
    return tried.returncode == 0


def _texts(patterns: tuple[str, ...]) -> Iterator[str]:
    """Long runs of what is common, and of the words and signs that the patterns name, with an end that fits nothing."""
    plain = re.sub(r"\\[pP]\{.*?\}", "", "".join(patterns))
    for unit in (*_UNITS, *sorted(set(re.findall(r"\w+|[^\w\s]", plain)))[:_NAMED]):
        for end in _ENDS:
            yield unit * (_LENGTH // len(unit)) + end


def _patterns(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("Regex"), str):
            yield value["Regex"]
        for inner in value.values():
            yield from _patterns(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _patterns(inner)
