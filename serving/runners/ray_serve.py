"""Models on a pool of machines: Ray Serve, with batches, replicas and autoscaling.

On the cluster:     serve run --name attention-atlas serving.runners.ray_serve:pool \\
                        min_replicas=2 max_replicas=8 gpus=0.5
Each front end:     ATLAS_RUNNER=serve python hosted.py
                    on a node of the cluster (`ray start --address=HEAD:6379 --num-cpus=0`)
                    (and with Ray's token where the cluster wants one: RAY_AUTH_MODE=token)

A replica caches loaded models and traces, within bounds. Any replica can run any request, so nothing is lost when one
dies: its requests are sent again.
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
from serving.requests.hub import HubModelSpec
from serving.requests.models import ModelRegistry, ModelSpec
from serving.requests.request import RunRequest
from serving.runners.remote import ModelServer, Outline, RemoteRunner
from serving.settings import settings
from viz_core.runtime.hooks import interruptible, may_end

APPLICATION = "attention-atlas"
_MAX_RESULTS = 512
_BATCH = 8
_BATCH_SECONDS = 0.01  # for which a first sentence waits for others
_PAUSE = 0.2  # seconds before a retry
_TIMEOUT = 60.0  # seconds of retries while no replica is alive
_STEP = 0.5  # seconds between two checks whether the result is still needed


class PoolSize(BaseModel, extra="forbid"):
    """Size of the pool, and resources of each replica."""

    min_replicas: int = Field(1, ge=0)
    max_replicas: int = Field(4, ge=1)
    ongoing: float = Field(2.0, gt=0, description="running requests of a replica above which another one starts")
    waiting: int = Field(100, ge=-1, description="length of the queue; -1 for any")
    cpus: float = 1.0
    gpus: float = 0.0


class Replica:
    """Models on one machine of the pool."""

    def __init__(self) -> None:
        torch.set_num_threads(settings().threads)
        self._server = ModelServer(ModelRegistry(), LRUCache(_MAX_RESULTS, settings().cache_mb * 2**20))

    @serve.multiplexed(max_num_models_per_replica=HubModelSpec.max_loaded)  # type: ignore[untyped-decorator]
    async def announce(self, affinity: str) -> str:
        """Tell the pool that this replica has loaded a model, so that its requests come here."""
        return affinity

    @serve.batch(max_batch_size=_BATCH, batch_wait_timeout_s=_BATCH_SECONDS)  # type: ignore[untyped-decorator]
    async def outline(self, requests: list[RunRequest[Any, Any]]) -> list[Outline | Exception]:
        """Return runs without their traces, in batches."""
        return await asyncio.to_thread(self._server.outlines, requests)

    async def execute(self, method: str, subject: Any, *args: Any, **kwargs: Any) -> Any:
        """Call a method of the server. It ends early when the caller cancels it."""
        if affinity := serve.get_multiplexed_model_id():
            await self.announce(affinity)
        if method == "outline":
            return await self._outline(subject)
        if method not in ModelServer.methods:
            raise ValueError(f"method: expected one of {', '.join(ModelServer.methods)}, got {method!r}")
        return await _interruptible(getattr(self._server, method), subject, *args, **kwargs)

    async def _outline(self, request: RunRequest[Any, Any]) -> Outline:
        if request.in_batches:
            found = await self.outline(request)  # Ray collects single requests into a list
        else:
            [found] = await _interruptible(self._server.outlines, [request])
        if isinstance(found, Exception):
            raise found
        return cast(Outline, found)


async def _interruptible(work: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Run `work` in a thread, and interrupt it when this coroutine is cancelled."""
    cancelled = threading.Event()

    def check() -> None:
        if cancelled.is_set():
            raise AbandonedError(work.__name__)

    def in_thread() -> Any:
        with interruptible(check):
            return work(*args, **kwargs)

    try:
        return await asyncio.to_thread(in_thread)
    finally:
        cancelled.set()


_DEPLOYMENT: Any = serve.deployment(name="models")(Replica)


def pool(size: PoolSize | dict[str, str]) -> serve.Application:
    """Return the application for `serve run`, which passes its arguments as strings.

    pydantic.ValidationError if an argument is unknown or not a number.
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
    """Return a runner of the models of the pool at this address; runs are cached in `cache`."""
    if not ray.is_initialized():
        ray.init(address=address, log_to_driver=False, namespace="serve")

    @lru_cache
    def pool_handle() -> Any:  # the pool may come up later
        return serve.get_app_handle(APPLICATION)

    def execute(method: str, subject: ModelSpec[Any] | RunRequest[Any, Any], *args: Any, **kwargs: Any) -> Any:
        affinity = (subject if isinstance(subject, ModelSpec) else subject.model).affinity
        end = time.monotonic() + _TIMEOUT
        while True:
            may_end()
            try:
                handle = pool_handle()
                replica = handle.options(multiplexed_model_id=affinity) if affinity else handle
                return _wait(replica.execute.remote(method, subject, *args, **kwargs))
            except RayTaskError as error:  # its message contains a stack trace
                raise error.cause from None
            except BackPressureError:
                raise BusyError(method) from None
            except (RayActorError, RayServeException):  # a replica died, or none has started: try again
                if time.monotonic() > end:
                    raise BusyError(method) from None
                time.sleep(_PAUSE)

    return RemoteRunner(execute, cache)


def _wait(response: Any) -> Any:
    """Wait for a result; cancel the call when its slot is out of time or abandoned."""
    while True:
        try:
            return response.result(timeout_s=_STEP)
        except (TimeoutError, GetTimeoutError):
            try:
                may_end()
            except BaseException:
                response.cancel()
                raise
