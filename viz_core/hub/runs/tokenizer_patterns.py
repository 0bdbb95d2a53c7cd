"""Test a tokenizer's patterns for catastrophic backtracking before they are used.

The library that matches them lets no other thread run meanwhile and cannot be interrupted; so they are tried in a
process of their own, whose processor's time is bounded. Backtracking over (a+)+ doubles with every letter, over a*a*
it grows with the square of the text (Davis and others 2018, "The impact of regular expression denial of service").
"""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from viz_core.hub.store.errors import HubError
from viz_core.runtime.limited_process import LimitError, Limits, run_limited
from viz_core.runtime.tokenizer_trial import try_patterns

_LENGTH = 2000  # characters of a trial: a million steps for what grows with the square of it
_LIMITS = Limits(cpu_seconds=1)  # for all trials of a tokenizer
_UNITS = ("a", "A", "1", " ", "\n", "a ", "a1", "é", "'s", ".", "_", "aA")
_NAMED = 40  # words and signs
_ENDS = ("", "!", "\0")


def costly(tokenizer: Any) -> bool:
    """Whether a loaded tokenizer has patterns that are invalid or may not end; a slow tokenizer has none."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    parts = [getattr(backend, name, None) for name in ("normalizer", "pre_tokenizer", "decoder")]
    found = {pattern for part in parts if part is not None for pattern in _patterns(json.loads(part.__getstate__()))}
    try:
        return bool(found) and not _come_to_an_end(tuple(sorted(found)))
    except LimitError:  # a limit of the clock or of memory may be the machine's: not cached
        return True


@contextmanager
def panics_in_words(refusal: HubError) -> Iterator[None]:
    """Raise `error` where the library panics over a pattern, which is not an Exception."""
    try:
        yield
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # pyo3's; it cannot be imported
            raise
        raise refusal from None


@lru_cache(maxsize=256)
def _come_to_an_end(patterns: tuple[str, ...]) -> bool:
    content = json.dumps([patterns, list(_texts(patterns))]).encode()
    try:
        run_limited(try_patterns, content, limits=_LIMITS)
    except LimitError as error:
        if error.status != 1:
            raise
        return False
    return True


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
