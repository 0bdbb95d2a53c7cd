"""Models and what they answered, cached within bounds and shared, read-only, by all sessions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Concatenate

import numpy as np

from serving.compute.singleton import existing, singleton
from serving.models.model_registry import ModelRegistry
from serving.models.model_spec import ModelSpec, ShippedTranslator
from serving.requests.contributions import ContributionRequest
from serving.requests.request import Request, run_key
from serving.requests.translation import TranslationRequest
from serving.runners.local_runner import LocalRunner
from serving.runners.remote_runner import RemoteRunner
from serving.runners.runner import Answer, Arguments, Model, Run, Runner
from serving.settings import settings
from ui.compute.slots import cached, compute_cached, results, run_in_slot
from ui.text.words import load_words
from viz_core.pretrained import Translation, Translator
from viz_core.trace import HeadsOff
from viz_core.view.map_group import MapGroup

if TYPE_CHECKING:
    from serving.runners.worker_pool import WorkerPool


@singleton
def registry() -> ModelRegistry:
    """The models in this process."""
    return ModelRegistry()


@singleton
def runner() -> Runner:
    """Where models run."""
    if settings().runner == "serve":
        from serving.runners.ray_serve import on_serve  # Ray is there only where it is wanted

        return on_serve(settings().ray_address, results())
    if settings().workers:
        return RemoteRunner(workers().execute, results())
    return LocalRunner(registry(), results())


@singleton
def workers() -> WorkerPool:
    """The processes that models run in, where they run in any."""
    from serving.runners.worker_pool import WorkerPool

    return WorkerPool(settings().workers)


def end_workers() -> None:
    """Leave no process behind."""
    if (pool := existing(workers)) is not None:
        pool.close()


def run(request: Request[Model, Run], kind: str, message: str = "computing") -> Run:
    """What a model makes of a request, in a slot; nothing in it changes, so sessions that ask the same share it.

    Args:
        request: what is asked.
        kind: for the metrics.
        message: what a visitor reads meanwhile, a name of common.md.

    Raises:
        ValueError: if there is no such model, or it cannot take this; the message is for a person.
    """
    found = runner().find(request)
    if found is not None:
        return found
    return run_in_slot(lambda: runner().run(request), kind, run_key(request), message)


def evaluate(
    request: Request[Model, Run],
    question: Callable[Concatenate[Model, Run, Arguments], Answer],
    /,
    *args: Arguments.args,
    **kwargs: Arguments.kwargs,
) -> Answer:
    """question(model, run, *arguments), asked in a slot beside the model, and kept."""
    asked = (request, *args, *sorted(kwargs.items()))
    return compute_cached(lambda: runner().evaluate(request, question, *args, **kwargs), question, asked, "measuring")


def evaluate_model(
    model: ModelSpec[Model],
    question: Callable[Concatenate[Model, Arguments], Answer],
    /,
    *args: Arguments.args,
    **kwargs: Arguments.kwargs,
) -> Answer:
    """question(model, *arguments), asked in a slot beside the model, and kept."""
    asked = (model, *args, *sorted(kwargs.items()))
    return compute_cached(lambda: runner().evaluate_model(model, question, *args, **kwargs), question, asked)


@cached()
def map_groups(
    request: Request[Any, Any], words: str, language: str, show_contributions: bool = False
) -> tuple[MapGroup, ...]:
    """The maps of a run as an attention view shows them, named by these words; they keep their thumbnails.

    Args:
        show_contributions: of each key's share of what a head adds, in place of its weight.
    """
    asked = ContributionRequest(request) if show_contributions else request
    return runner().groups(asked, load_words(words, language).group("view"))


def row_error(groups: Sequence[MapGroup]) -> float:
    """By how much any row of these maps misses a sum of 1: what their thumbnails needed anyway, asked for in a slot."""
    return run_in_slot(lambda: float(np.max([group.row_error for group in groups])), "rows")


def translator(name: str) -> Translator:
    """A shipped translator in this process: for what is read off its parameters."""
    return registry()(ShippedTranslator(name))


def translator_or_none(name: str) -> Translator | None:
    """The same, or None where none ships or the device is not there: for who needs no more than its words."""
    try:
        return translator(name)
    except ValueError:
        return None


def sentence_request(name: str, text: str, beam: int = 1, off: HeadsOff = ()) -> TranslationRequest:
    """A text for a shipped translator, some of whose heads may be off."""
    return TranslationRequest(ShippedTranslator(name), text, beam, off)


def translation(name: str, text: str, beam: int, off: HeadsOff = ()) -> Translation:
    """A translation with its trace."""
    return run(sentence_request(name, text, beam, off), "translation", "translating")


def translation_maps(
    name: str, text: str, beam: int, language: str, off: HeadsOff = (), show_contributions: bool = False
) -> tuple[MapGroup, ...]:
    """The maps of a translation as an attention view shows them."""
    return map_groups(sentence_request(name, text, beam, off), "translation", language, show_contributions)
