"""Models and their results, in bounded caches that all sessions share; results are read-only.

The last functions name the model lab's models on the machine that runs models.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate

import numpy as np
import streamlit as st

from serving.compute.slots import existing, singleton
from serving.compute.turns import page_turns
from serving.requests.models import ModelRegistry, ModelSpec, NoModel, ShippedTranslator
from serving.requests.request import ContributionRequest, RunRequest, run_key
from serving.requests.shipped import TranslationRequest
from serving.runners.remote import RemoteRunner
from serving.runners.runner import Answer, Arguments, LocalRunner, Model, Run, Runner
from serving.settings import settings
from ui.compute.slots import compute_cached, metrics, results, run_in_slot
from ui.text.translations import explain, first_line
from ui.text.words import load_words
from viz_core.maps.contributions import ContributionKind
from viz_core.pretrained import Translation, Translator
from viz_core.runtime.refusal import RefusalError
from viz_core.view.map_group import MapGroup

if TYPE_CHECKING:
    from serving.requests.hub import HubVisionSpec
    from serving.requests.lab import HubOffer
    from serving.runners.shared_pool import PoolClient
    from serving.runners.worker_pool import WorkerPool


@singleton
def registry() -> ModelRegistry:
    """Return the models loaded in this process."""
    return ModelRegistry()


@singleton
def runner() -> Runner:
    """Return the runner of models: in this process, in worker processes, or on Ray Serve."""
    if settings().runner == "serve":
        from serving.runners.ray_serve import on_serve  # Ray is an optional dependency

        return on_serve(settings().ray_address, results())
    if settings().workers:
        return RemoteRunner(_execute, results())
    return LocalRunner(registry(), results())


def _execute(*args: Any, **kwargs: Any) -> Any:
    """Have a worker do this; other pages of the address run while this one waits, outside of a slot too."""
    with page_turns.pause():
        return workers().execute(*args, **kwargs)


@singleton
def workers() -> WorkerPool | PoolClient:
    """Return the pool of worker processes that models run in, if they run in any: of this process, or of several."""
    from serving.runners.shared_pool import PoolClient
    from serving.runners.worker_pool import WorkerPool

    return (
        PoolClient(_shared_pool[0]) if _shared_pool else WorkerPool(settings().workers, metrics().batch_sizes.observe)
    )


_shared_pool: list[str] = []  # its address


def share_pool(address: str) -> None:
    """Have this process use the pool at an address."""
    _shared_pool[:] = [address]


def end_workers() -> None:
    """End the worker processes, if there are any."""
    if (pool := existing(workers)) is not None:
        pool.close()


def run(request: RunRequest[Model, Run], kind: str, message: str = "computing") -> Run:
    """Return the run of a model on a request, computed in a slot; sessions with the same request share it.

    Args:
        request: the model and its input.
        kind: of work, for the metrics.
        message: section of common.md that a visitor reads during the computation.

    Raises:
        ValueError: if there is no such model, or it cannot take this input; the message is for the visitor.
    """
    there = runner()
    existing_run = there.find(request)
    if existing_run is not None:
        return existing_run
    return run_in_slot(partial(there.run, request), kind, run_key(request), message)


def evaluate(
    request: RunRequest[Model, Run],
    function: Callable[Concatenate[Model, Run, Arguments], Answer],
    /,
    *args: Arguments.args,
    **kwargs: Arguments.kwargs,
) -> Answer:
    """Return function(model, run, *args), computed in a slot where the model runs, and cached."""
    arguments = (request, *args, *sorted(kwargs.items()))
    return compute_cached(
        lambda: runner().evaluate(request, function, *args, **kwargs), function, arguments, "measuring"
    )


def evaluate_model(
    model: ModelSpec[Model],
    function: Callable[Concatenate[Model, Arguments], Answer],
    /,
    *args: Arguments.args,
    **kwargs: Arguments.kwargs,
) -> Answer:
    """Return function(model, *args), computed in a slot where the model is loaded, and cached."""
    arguments = (model, *args, *sorted(kwargs.items()))
    return compute_cached(lambda: runner().evaluate_model(model, function, *args, **kwargs), function, arguments)


def map_groups(
    request: RunRequest[Any, Any], words: str, language: str, contribution_kind: ContributionKind = ""
) -> tuple[MapGroup, ...]:
    """Return the maps of a run for an attention view; they cache their thumbnails.

    Args:
        words: chapter whose words name the maps.
        contribution_kind: maps of what each key adds instead of its weight, as shares or as lengths.
    """
    if contribution_kind:
        request = ContributionRequest(request, contribution_kind == "lengths")
    key = ("maps", request.without_payload, words, language)
    found: tuple[MapGroup, ...] = results().get(key, ())
    if not found:
        run(request, "maps")  # in a slot, unless it has run; the maps compute nothing yet
        found = runner().groups(request, load_words(words, language).group("view"))
        results().put(key, found)
    return found


def row_error(groups: Sequence[MapGroup]) -> float:
    """Return the largest difference from 1 of the sum of any row, computed in a slot with the thumbnails."""
    return run_in_slot(lambda: float(np.max([group.row_error for group in groups])), "rows")


def translator(name: str) -> Translator:
    """Return a shipped translator in this process, to read its parameters."""
    return registry()(ShippedTranslator(name))


def translator_or_none(name: str) -> Translator | None:
    """Return a shipped translator, or None if it is missing or its device is: for its vocabulary alone."""
    try:
        return translator(name)
    except ValueError:
        return None


def sentence_request(name: str, text: str, beam: int = 1) -> TranslationRequest:
    """Return the request for the translation of a text."""
    return TranslationRequest(ShippedTranslator(name), text, beam)


def translation(request: TranslationRequest) -> Translation:
    """Return a translation with its trace."""
    return run(request, "translation", "translating")


def translation_maps(
    request: TranslationRequest, language: str, contribution_kind: ContributionKind = ""
) -> tuple[MapGroup, ...]:
    """Return the maps of a translation for an attention view."""
    return map_groups(request, "translation", language, contribution_kind)


def local_models(folders: tuple[Path, ...], max_age: float = 20.0) -> tuple[str, ...]:
    """Return the names of models that can be loaded without a network, read at most `max_age` seconds ago in a slot."""
    from serving.requests.lab import local_model_names

    key = (local_model_names.__qualname__, folders)
    names, since = results().get(key, ((), -math.inf))
    if time.monotonic() - since > max_age:
        names = run_in_slot(
            lambda: runner().evaluate_model(NoModel(), local_model_names), local_model_names.__name__, key
        )
        results().put(key, (names, time.monotonic()))
    return names


def local_model_kinds(names: tuple[str, ...]) -> dict[str, str]:
    """Return the kind of each model that can be loaded without a network, for the names of `local_models`."""
    from serving.requests.lab import local_model_kinds as find_kinds

    return compute_cached(lambda: runner().evaluate_model(NoModel(), find_kinds), find_kinds, (names,), "measuring")


def typed_sources(offer: HubOffer) -> tuple[str, ...]:
    """Return the sources besides the list: any folder may be opened from this machine only, as others could try paths.

    Args:
        offer: of this server.
    """
    if offer.restricted or offer.names:
        return ()
    is_remote = isinstance(st.context.ip_address, str)  # None on this machine
    return ("hub",) if is_remote and not offer.folders else ("hub", "folder")


def attempted(work: Callable[[], Answer]) -> Answer | None:
    """Return what `work` returns; None, after a message, for an error that a reader can do something about."""
    try:
        return work()
    except RefusalError as error:
        st.warning(explain(error), icon=":material/edit:")
    except ValueError as error:  # an absent device; the message names those there are
        st.error(explain(error), icon=":material/memory:")
    except (MemoryError, RuntimeError) as error:  # torch's own, when memory runs out in the middle
        st.error(load_words("model-lab")("failed", reason=first_line(error)), icon=":material/memory:")
    return None


def warn_of_weights(model: ModelSpec[Any]) -> None:
    """Warn beside the maps of a model of the lab if it has weights that are no numbers."""
    from serving.requests.hub import HubModelSpec, HubVisionSpec
    from viz_core.lab.runs import read_card

    hub = model.hub if isinstance(model, HubVisionSpec) else model
    found = evaluate_model(hub, read_card).not_finite if isinstance(hub, HubModelSpec) else ()
    if found:
        warning = load_words("model-lab")("not-finite", parts=[f"`{name}`" for name in found])
        st.warning(warning, icon=":material/warning:")


def lab_vision_model(name: str) -> HubVisionSpec:
    """Return a vision model of the lab by its name in a link.

    Raises:
        HubError: if the model is not on the machine, or not offered.
    """
    from serving.requests.lab import hub_offer, linked_vision_model

    folders = hub_offer().folders
    here = local_models(folders)
    return linked_vision_model(name, here if name in here else local_models(folders, 0))  # it may be new
