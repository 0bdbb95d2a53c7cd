"""Models on a pool of machines: Ray Serve, with batches, replicas and autoscaling.

On the cluster:     serve run --name attention-atlas serving.runners.ray_serve:pool \\
                        min_replicas=2 max_replicas=8 gpus=0.5
Each front end:     ATLAS_RUNNER=serve python hosted.py
                    on a node of the cluster (`ray start --address=HEAD:6379 --num-cpus=0`)
                    (and with Ray's token where the cluster wants one: RAY_AUTH_MODE=token)

A replica keeps the models it loaded and the traces it made, within bounds. Any other works out what it has not seen,
so a replica that dies takes nothing with it: its questions are asked again.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from functools import lru_cache
from typing import Any, cast

import ray
import torch
from pydantic import BaseModel, Field
from ray import serve
from ray.exceptions import GetTimeoutError, RayActorError, RayTaskError
from ray.serve.exceptions import BackPressureError, RayServeException

from serving.compute.cache import LRUCache
from serving.compute.slots import AbandonedError, BusyError
from serving.models.model_registry import ModelRegistry
from serving.models.model_spec import ModelSpec
from serving.requests.hub import HubModelSpec
from serving.requests.request import Request
from serving.runners.model_server import ModelServer
from serving.runners.remote_run import Outline
from serving.runners.remote_runner import RemoteRunner
from serving.settings import settings
from viz_core.runtime.interruption import interruptible, may_end

APPLICATION = "attention-atlas"
_MOST_RESULTS = 512
_BATCH = 8
_BATCH_SECONDS = 0.01  # for which a first sentence waits for others
_PAUSE = 0.2  # seconds before a question is asked again
_PATIENCE = 60.0  # seconds for which a pool without a living replica is asked again
_STEP = 0.5  # seconds between two looks at whether the answer is still wanted


class PoolSize(BaseModel, extra="forbid"):
    """How large the pool is, and what each replica has."""

    min_replicas: int = Field(1, ge=0)
    max_replicas: int = Field(4, ge=1)
    ongoing: float = Field(2.0, gt=0, description="questions at once on a replica, above which another one starts")
    waiting: int = Field(100, ge=-1, description="questions that may wait; -1 for any number")
    cpus: float = 1.0
    gpus: float = 0.0


class Replica:
    """Models, and the work on their traces, on one machine of the pool."""

    def __init__(self) -> None:
        torch.set_num_threads(settings().threads)
        self._server = ModelServer(ModelRegistry(), LRUCache(_MOST_RESULTS, settings().cache_mb * 2**20))

    @serve.multiplexed(max_num_models_per_replica=HubModelSpec.most_loaded)  # type: ignore[untyped-decorator]
    async def announce(self, affinity: str) -> str:
        """Tell the pool that this replica is where a model is loaded: questions about it come here."""
        return affinity

    @serve.batch(max_batch_size=_BATCH, batch_wait_timeout_s=_BATCH_SECONDS)  # type: ignore[untyped-decorator]
    async def outline(self, requests: list[Request[Any, Any]]) -> list[Outline | Exception]:
        """Runs without their traces, as many as come together in one batch."""
        return await asyncio.to_thread(self._server.outlines, requests)

    async def ask(self, question: str, subject: Any, *args: Any, **kwargs: Any) -> Any:
        """A question to the server, of a model or a request. It ends early if nobody waits for the answer any more."""
        if affinity := serve.get_multiplexed_model_id():
            await self.announce(affinity)
        if question == "outline":
            return await self._outline(subject)
        if question not in ModelServer.questions:
            raise ValueError(f"question: expected one about a model or a run, got {question!r}")
        return await _while_wanted(getattr(self._server, question), subject, *args, **kwargs)

    async def _outline(self, request: Request[Any, Any]) -> Outline:
        if request.in_batches:
            found = await self.outline(request)  # one of many: they become a list on the way
        else:
            [found] = await _while_wanted(self._server.outlines, [request])
        if isinstance(found, Exception):
            raise found
        return cast(Outline, found)


async def _while_wanted(work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """What `work` returns, in another thread; told between two of its steps where the question was taken back."""
    taken_back = threading.Event()

    def check() -> None:
        if taken_back.is_set():
            raise AbandonedError(work.__name__)

    def in_thread() -> Any:
        with interruptible(check):
            return work(*args, **kwargs)

    try:
        return await asyncio.to_thread(in_thread)
    finally:
        taken_back.set()


_DEPLOYMENT: Any = serve.deployment(name="models")(Replica)


def pool(size: PoolSize | dict[str, str]) -> serve.Application:
    """The application of this size, for `serve run`, which gives what stands behind it on its line as texts.

    Raises:
        pydantic.ValidationError: if that names no size, or no number.
    """
    size = PoolSize.model_validate(size)
    autoscaling = {
        "min_replicas": size.min_replicas,
        "max_replicas": size.max_replicas,
        "target_ongoing_requests": size.ongoing,
    }
    return _DEPLOYMENT.options(
        autoscaling_config=autoscaling,
        max_ongoing_requests=2 * _BATCH,
        max_queued_requests=size.waiting,
        ray_actor_options={"num_cpus": size.cpus, "num_gpus": size.gpus},
    ).bind()


def on_serve(address: str, cache: LRUCache) -> RemoteRunner:
    """The models of the pool at this address; runs are kept in `cache`."""
    if not ray.is_initialized():
        ray.init(address=address, log_to_driver=False, namespace="serve")

    @lru_cache
    def pool_handle() -> Any:  # the pool may come up later
        return serve.get_app_handle(APPLICATION)

    def ask(question: str, subject: ModelSpec[Any] | Request[Any, Any], *args: Any, **kwargs: Any) -> Any:
        affinity = (subject if isinstance(subject, ModelSpec) else subject.model).affinity
        end = time.monotonic() + _PATIENCE
        while True:
            may_end()
            try:
                handle = pool_handle()
                asked = handle.options(multiplexed_model_id=affinity).ask if affinity else handle.ask
                return _wait(asked.remote(question, subject, *args, **kwargs))
            except RayTaskError as error:  # its own words hold a stack trace
                raise error.cause from None
            except BackPressureError:
                raise BusyError(question) from None
            except (RayActorError, RayServeException):  # a replica died, or none is there yet: ask the same again
                if time.monotonic() > end:
                    raise BusyError(question) from None
                time.sleep(_PAUSE)

    return RemoteRunner(ask, cache)


def _wait(response: Any) -> Any:
    """The answer; the question is taken back where the slot that asks has no more time, or nobody looks at it."""
    while True:
        try:
            return response.result(timeout_s=_STEP)
        except (TimeoutError, GetTimeoutError):
            try:
                may_end()
            except BaseException:
                response.cancel()
                raise
