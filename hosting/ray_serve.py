"""The shipped models on a pool of machines: Ray Serve, with batches, replicas and autoscaling.

On the cluster:     serve run --name attention-atlas hosting.ray_serve:pool min_replicas=2 max_replicas=8 gpus=0.5
Each front end:     ATLAS_RUNNER=serve python hosted.py
                    on a node of the cluster (`ray start --address=HEAD:6379 --num-cpus=0`)
                    (and with Ray's token where the cluster wants one: RAY_AUTH_MODE=token)

A replica keeps the traces it made, within bounds. Any other works out what it has not seen, so a replica that dies
takes nothing with it: its questions are asked again.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

import ray
import torch
from pydantic import BaseModel, Field
from ray import serve
from ray.exceptions import GetTimeoutError, RayActorError, RayTaskError
from ray.serve.exceptions import BackPressureError, DeploymentUnavailableError

from hosting.keeping import Kept
from hosting.runner import Here, Loaded, Outline, Sentence, There
from hosting.settings import settings
from hosting.slots import BusyError, OutOfTimeError
from viz_core.pretrained import load_translator

APPLICATION = "attention-atlas"
_MOST_KEPT = 512
_BATCH = 8
_BATCH_SECONDS = 0.01  # for which a first sentence waits for others
_PAUSE = 0.2  # seconds before a question is asked again


class PoolSize(BaseModel):
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
        self._here = Here(Loaded(load_translator), Kept(_MOST_KEPT, settings().cache_mb * 2**20))

    @serve.batch(max_batch_size=_BATCH, batch_wait_timeout_s=_BATCH_SECONDS)  # type: ignore[untyped-decorator]
    async def outline(self, sentences: list[Sentence]) -> list[Outline | Exception]:
        """Translations without their traces, as many as come together in one batch."""
        return await asyncio.to_thread(self._outlines, sentences)

    async def ask(self, question: str, sentence: Sentence, *arguments: Any) -> Any:
        """Any other question to `Here`."""
        if question == "outline":
            return await self.outline(sentence)  # one of many: they become a list on the way
        if question not in ("look", "picture", "part", "rows"):
            raise ValueError(f"question: expected one about a sentence, got {question!r}")
        return await asyncio.to_thread(getattr(self._here, question), sentence, *arguments)

    def _outlines(self, sentences: list[Sentence]) -> list[Outline | Exception]:
        refused = {one: self._here.check(one) for one in sentences}
        good = [one for one in sentences if refused[one] is None]
        self._here.translate_all(good)  # in one batch; kept for the next line
        return [refused[one] or self._here.outline(one) for one in sentences]


_DEPLOYMENT: Any = serve.deployment(name="models")(Replica)


def pool(size: PoolSize) -> serve.Application:
    """The application of this size, for `serve run`."""
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


def on_serve(address: str, max_seconds: float) -> There:
    """The models of the pool at this address."""
    if not ray.is_initialized():
        ray.init(address=address, log_to_driver=False, namespace="serve")
    handle = serve.get_app_handle(APPLICATION)

    def ask(question: str, sentence: Sentence, *arguments: Any) -> Any:
        end = time.monotonic() + max_seconds
        while True:
            try:
                return handle.ask.remote(question, sentence, *arguments).result(timeout_s=end - time.monotonic())
            except (RayActorError, DeploymentUnavailableError):  # it died: another answers the same
                if time.monotonic() + _PAUSE > end:
                    raise BusyError(question) from None
                time.sleep(_PAUSE)
            except RayTaskError as error:  # its own words hold a stack trace
                raise error.cause from None
            except BackPressureError:
                raise BusyError(question) from None
            except (TimeoutError, GetTimeoutError):
                raise OutOfTimeError(question) from None

    return There(ask)
