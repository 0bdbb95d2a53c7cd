"""Computation for many visitors: a bounded number of slots, a queue, and a bounded cache of results."""

import time
from collections.abc import Callable, Hashable, Iterable
from functools import partial, wraps
from inspect import signature
from typing import Any, NoReturn, ParamSpec, TypeVar

import streamlit as st
import torch
from streamlit.delta_generator import DeltaGenerator

from serving.compute.cache import MISSING, LRUCache
from serving.compute.slots import (
    AbandonedError,
    BusyError,
    Job,
    OutOfTimeError,
    OwnBusyError,
    Slots,
    in_slot,
    singleton,
)
from serving.compute.turns import Client, page_turns
from serving.metrics import Metrics
from serving.settings import Settings, settings
from ui.streamlit_internals.batched_messages import flush_messages
from ui.streamlit_internals.message_filter import has_acted
from ui.streamlit_internals.script_run import in_script_run, network, once_per_run, window_id
from ui.text.words import load_words
from viz_core.runtime.hooks import CpuTimeError

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")

_FLUSH_AFTER = 0.02  # seconds, after which the page sends what it has drawn so far
_SHOW_AFTER = 0.3  # seconds, after which the page says what it waits for
_POLL_SECONDS = 0.5
_MAX_RESULTS = 512

LINK_SECONDS = 1.2
"""Processor seconds of computation that a link costs; the page, and the step in which that ends, take the rest of 2."""

_SPENT, _CLICKED = "link-seconds", "link-clicked"


@singleton
def metrics() -> Metrics:
    """Return the metrics of this process."""
    return Metrics()


@singleton
def slots() -> Slots:
    """Return the slots of this process."""
    allowed = settings()
    # Small models are slower on two threads than on one, and much slower while other slots compute.
    torch.set_num_threads(allowed.threads)
    made = Slots(allowed.slots, allowed.queue, allowed.max_seconds, metrics())
    metrics().watch_slots(made.count)
    return made


@singleton
def results() -> LRUCache:
    """Return the cache of results of this process."""
    made = LRUCache(_MAX_RESULTS, settings().cache_mb * 2**20)
    metrics().watch_cache(lambda: (len(made), made.nbytes))
    return made


def this_client() -> Client:
    """Return who asks in this run: the address that limits count, None on this machine, and the window."""
    return Client(network(), window_id())


def time_limit() -> float:
    """Return the seconds one computation may take; a long one must end itself by then."""
    return settings().max_seconds


def is_hosted() -> bool:
    """Whether this is a public server, where long work has to be small."""
    return _settings().hosted


def _settings() -> Settings:
    """Return the settings, read once in a run of a page."""
    return once_per_run("settings", settings)


def cached(
    message: str = "computing", keep: type[Exception] | tuple[()] = ()
) -> Callable[[Callable[Arguments, Result]], Callable[Arguments, Result]]:
    """Decorate a function so that its results are computed in a slot and cached for all sessions.

    Its arguments are small hashable values, and its results are read-only. Runs of models are cached by their runner
    already: see `ui.compute.models.run`.

    Args:
        message: section of common.md that a visitor reads during the computation.
        keep: errors that are results too: what is refused once is not tried again in every run of a page.
    """

    def decorate(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
        parameters = signature(function)

        @wraps(function)
        def compute(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
            def work() -> Result | Exception:
                try:
                    return function(*args, **kwargs)
                except keep as error:
                    return error

            arguments = parameters.bind(*args, **kwargs).arguments.values()
            found = compute_cached(work, function, arguments, message)
            if isinstance(found, Exception):
                raise found
            return found

        return compute

    return decorate


def compute_cached(
    work: Callable[[], Result], function: Callable[..., Any], arguments: Iterable[Any], message: str = "computing"
) -> Result:
    """Return what `work` returns, computed in a slot the first time and cached for all sessions.

    Args:
        work: computes the result.
        function: its name is part of the key, and the kind of work in the metrics.
        arguments: small hashable values that the result depends on. One that holds a picture is represented by its
            `without_payload`, so that the key does not hold the picture.
        message: section of common.md that a visitor reads during the computation.
    """
    name = f"{function.__module__}.{function.__qualname__}"
    key = (name, *(getattr(value, "without_payload", value) for value in arguments))
    found = results().get(key)
    if found is not MISSING:
        return found  # type: ignore[no-any-return]

    def compute() -> Result:
        result = work()
        results().put(key, result)
        return result

    return run_in_slot(compute, function.__name__, key, message)


def run_in_slot(work: Callable[[], Result], kind: str, key: Hashable = None, message: str = "computing") -> Result:
    """Return what `work` returns, or raise what it raises, once it has run in a slot.

    Past the limits of queue and time the page ends here, with a button to try again. The work runs in another thread
    and cannot draw.

    Args:
        work: calls `viz_core.runtime.hooks.may_end` between its steps if it is long.
        kind: of work, for the metrics.
        key: calls with equal keys share one computation while it runs.
        message: section of common.md that a visitor reads during the computation.
    """
    if in_slot():
        return work()
    if not in_script_run():  # a server warms up or makes a file: there is no page to draw on
        job = slots().submit(kind, work, key)
        while not job.wait(_POLL_SECONDS):
            _check_time(job)
        return job.result()  # type: ignore[no-any-return]
    place = st.empty()  # at each call, so that what follows keeps its place on the page
    most = _settings().cpu_seconds
    while True:
        try:
            left = _link_seconds()
            if left == 0:
                _stop_page(place, "link-waits", "compute")
            job = slots().submit(kind, work, key, this_client(), most if left is None else min(left, most))
            with page_turns.pause():
                if not job.wait(_FLUSH_AFTER):
                    flush_messages()
                if not job.wait(_SHOW_AFTER):
                    _wait(job, place, load_words("common")(message))
                    place.empty()
            return _result(job)  # type: ignore[no-any-return]
        except CpuTimeError:  # of a link the next turn says so, unless it was another window's job
            if job.cpu_limit == most:
                _stop_page(place, "out-of-cpu")
        except AbandonedError:  # the machine is so busy that this page polled too late: submit again
            continue
        except OwnBusyError:
            _stop_page(place, "own-windows-busy")
        except BusyError:
            _stop_page(place, "busy")
        except OutOfTimeError:
            _stop_page(place, "download-out-of-time" if message == "downloading" else "out-of-time")


def load_or_stop(work: Callable[[], Result]) -> Result:
    """Return what `work` returns: loading, which takes no slot. The page ends here if all model servers are busy."""
    flush_messages(everything=True)
    try:
        with page_turns.pause():
            return work()
    except BusyError:
        _stop_page(st.empty(), "busy")


def _wait(job: Job, place: DeltaGenerator, what: str) -> None:
    """Show the progress of a job until it is done. Each message lets Streamlit stop a run that is out of date."""
    words, allowed = load_words("common"), settings()
    start = time.monotonic()
    while not job.wait(_POLL_SECONDS):
        if number := job.place:
            if time.monotonic() - start > allowed.wait_seconds:
                raise BusyError(job.kind)
            queue = "in-own-queue" if job.waits_for_own else "in-the-queue"
            place.info(words(queue, what=what, place=number), icon=":material/groups:")
        else:
            _check_time(job)
            place.caption(words("at-work", what=what, seconds=f"{job.seconds:.0f}"))


def _link_seconds() -> float | None:
    """Return the processor seconds that the link of this window may still cost; None once its reader did something.

    Where the public may share links, one must not make the server compute for long by itself.
    """
    state = st.session_state
    if not is_hosted() or _CLICKED in state:
        return None
    if has_acted(window_id() or ""):
        state[_CLICKED] = True
        return None
    return max(0.0, LINK_SECONDS - state.get(_SPENT, 0.0))


def _result(job: Job) -> Any:
    try:
        return job.result()
    finally:
        if job.cpu_limit is not None and job.cpu_limit <= LINK_SECONDS:
            st.session_state[_SPENT] = st.session_state.get(_SPENT, 0.0) + job.cpu_seconds


def _check_time(job: Job) -> None:
    """Raise OutOfTimeError if the job should long have ended by itself."""
    if job.seconds > 2 * settings().max_seconds:
        raise OutOfTimeError(job.kind)


def _stop_page(place: DeltaGenerator, reason: str, button: str = "try-again") -> NoReturn:
    words, clicked = load_words("common"), partial(st.session_state.__setitem__, _CLICKED, True)
    others = {"link-waits": LINK_SECONDS, "out-of-cpu": settings().cpu_seconds}
    seconds = others.get(reason, settings().max_seconds)
    with place.container():
        st.warning(words(reason, seconds=f"{seconds:g}"), icon=":material/hourglass_disabled:")
        st.button(words(button), key=button, icon=":material/refresh:", type="primary", on_click=clicked)
    st.stop()
