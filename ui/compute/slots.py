"""Computing for many visitors at once: a bounded number of slots, a place in the queue, results kept in bounds."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable
from functools import wraps
from inspect import signature
from typing import Any, NoReturn, ParamSpec, TypeVar

import streamlit as st
import torch
from streamlit.delta_generator import DeltaGenerator

from serving.compute.cache import MISSING, LRUCache
from serving.compute.singleton import singleton
from serving.compute.slots import AbandonedError, BusyError, Job, OutOfTimeError, Slots, in_slot
from serving.metrics import Metrics
from serving.settings import settings
from ui.streamlit_internals.batched_messages import flush_messages
from ui.streamlit_internals.script_run import in_script_run
from ui.text.words import load_words

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_SOON = 0.02  # seconds; longer work sends first what stands above it
_BLINK = 0.3  # seconds; shorter work shows nothing
_STEP = 0.5
_MOST_RESULTS = 512  # results


@singleton
def metrics() -> Metrics:
    """What this process counts."""
    return Metrics()


@singleton
def slots() -> Slots:
    """This process's slots."""
    allowed = settings()
    # Small models are slower on two threads than on one, far slower where others compute as well.
    torch.set_num_threads(allowed.threads)
    made = Slots(allowed.slots, allowed.queue, allowed.max_seconds, metrics())
    metrics().watch_slots(made.count)
    return made


@singleton
def results() -> LRUCache:
    """This process's results, kept for whoever asks the same again."""
    made = LRUCache(_MOST_RESULTS, settings().cache_mb * 2**20)
    metrics().watch_cache(lambda: (len(made), made.nbytes))
    return made


def time_limit() -> float:
    """How long one computation may take: a long one ends itself by then."""
    return settings().max_seconds


def is_hosted() -> bool:
    """Whether strangers visit, so that long work has to be small."""
    return settings().hosted


def cached(message: str = "computing") -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]:
    """A function whose results are computed in a slot and kept for all sessions: of small values, and of nothing else.

    Nobody may change what is computed. Runs of models are kept by their runner already: see `ui.compute.models.run`.

    Args:
        message: what a visitor reads meanwhile, a name of common.md.
    """

    def decorate(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        form = signature(function)

        @wraps(function)
        def ask(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
            asked = form.bind(*args, **kwargs).arguments.values()
            return compute_cached(lambda: function(*args, **kwargs), function, asked, message)

        return ask

    return decorate


def compute_cached(
    work: Callable[[], Result], function: Callable[..., Any], asked: Iterable[Any], message: str = "computing"
) -> Result:
    """What `work` returns, computed in a slot the first time, and kept for all sessions.

    What carries a picture is known by its digest, `without_payload`, for a key must not keep the picture.

    Args:
        work: computes it.
        function: names it, for the key and the metrics.
        asked: what else it depends on: small hashable values.
        message: what a visitor reads meanwhile, a name of common.md.
    """
    name = f"{function.__module__}.{function.__qualname__}"
    key = (name, *(getattr(value, "without_payload", value) for value in asked))
    found = results().get(key)
    if found is not MISSING:
        return found  # type: ignore[no-any-return]

    def keep() -> Result:
        result = work()
        results().put(key, result)
        return result

    return run_in_slot(keep, function.__name__, key, message)


def run_in_slot(
    work: Callable[[], Result],
    kind: str,
    key: Hashable = None,
    message: str = "computing",
    place: DeltaGenerator | None = None,
) -> Result:
    """What `work` returns or raises, once it had its turn. Past the limits the page ends here, and offers to try again.

    It runs in another thread and may not draw.

    Args:
        work: calls `viz_core.interruption.may_end` between its steps where it is long.
        kind: for the metrics.
        key: work with the same key that is not over yet serves both who ask.
        message: what a visitor reads meanwhile, a name of common.md.
        place: where they read it; here, unless given.
    """
    if in_slot():
        return work()
    if not in_script_run():  # nobody looks on: a server warms up, or makes a file
        job = slots().submit(kind, work, key)
        while not job.wait(_STEP):
            _may_go_on(job)
        return job.result()  # type: ignore[no-any-return]
    place = place or st.empty()  # at each call, so that what follows on the page stays where it is
    while True:
        try:
            job = slots().submit(kind, work, key)
            if not job.wait(_SOON):
                flush_messages()
            if not job.wait(_BLINK):
                _wait(job, place, load_words("common")(message))
                place.empty()
            return job.result()  # type: ignore[no-any-return]
        except AbandonedError:  # so busy a machine that this page could not look in time: it is still here
            continue
        except BusyError:
            _give_up(place, "busy")
        except OutOfTimeError:
            _give_up(place, "out-of-time")


def load_or_stop(work: Callable[[], Result]) -> Result:
    """What `work` returns: loading, which takes no slot. The page ends here where a pool of machines has no room."""
    flush_messages()
    try:
        return work()
    except BusyError:
        _give_up(st.empty(), "busy")


def _wait(job: Job, place: DeltaGenerator, what: str) -> None:
    """Say how it stands until it is over; each word to the page is a chance for Streamlit to stop this run."""
    words, allowed = load_words("common"), settings()
    begun = time.monotonic()
    while not job.wait(_STEP):
        if number := job.place:
            if time.monotonic() - begun > allowed.wait_seconds:
                raise BusyError(job.kind)
            place.info(words("in-the-queue", what=what, place=number), icon=":material/groups:")
        else:
            _may_go_on(job)
            place.caption(words("at-work", what=what, seconds=f"{job.seconds:.0f}"))


def _may_go_on(job: Job) -> None:
    if job.seconds > 2 * settings().max_seconds:  # it should have ended by itself
        raise OutOfTimeError(job.kind)


def _give_up(place: DeltaGenerator, why: str) -> NoReturn:
    words = load_words("common")
    with place.container():
        st.warning(words(why, seconds=f"{settings().max_seconds:g}"), icon=":material/hourglass_disabled:")
        st.button(words("try-again"), key="try-again", icon=":material/refresh:", type="primary")
    st.stop()
