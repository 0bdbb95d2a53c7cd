"""Sentences of many visitors on a real local Ray Serve of two replicas, one of which is killed meanwhile.

`make serve-test` installs Ray and runs this.
"""

import itertools
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest
import torch

pytest.importorskip("ray", reason="make serve-test installs Ray")

import ray
from pydantic import ValidationError
from ray import serve

from benchmarks import load
from serving.compute.cache import LRUCache
from serving.requests.models import ModelRegistry, ShippedTranslator
from serving.requests.shipped import TranslationRequest
from serving.runners import ray_serve
from serving.runners.remote import RemoteRunner
from serving.runners.runner import LocalRunner

MODEL = ShippedTranslator("transformer-en-fr")
TIMEOUT = 300.0
LABELS: dict[str, str] = defaultdict(lambda: "label")


def replicas() -> list[str]:
    names = ray.util.list_named_actors(all_namespaces=True)
    start = f"SERVE_REPLICA::{ray_serve.APPLICATION}#models"
    return [one["name"] for one in names if one["name"].startswith(start)]


@pytest.fixture(scope="module")
def runner() -> Iterator[RemoteRunner]:
    """What asks the pool, once both its replicas are there."""
    with pytest.MonkeyPatch.context() as environment:  # replicas inherit it
        environment.setenv("HF_HUB_OFFLINE", "1")
        ray.init(log_to_driver=False, namespace="serve")  # the cluster of RAY_ADDRESS where there is one, else its own
        size = ray_serve.PoolSize(min_replicas=2, max_replicas=2, cpus=0.5)
        serve.run(ray_serve.pool(size), name=ray_serve.APPLICATION, route_prefix=None)
        end = time.monotonic() + TIMEOUT
        while len(replicas()) < 2 and time.monotonic() < end:
            time.sleep(0.5)
        assert len(replicas()) == 2
        yield ray_serve.on_serve("auto", LRUCache(512, 2**28))
        serve.shutdown()
        ray.shutdown()


def test_a_replica_dies_and_no_answer_is_wrong_or_lost(runner: RemoteRunner) -> None:
    """A hundred visitors ask at once. Every answer comes, and is that of a model here."""
    expected, visitors = [TranslationRequest(MODEL, text) for text in itertools.islice(load.sentences(), 300)], 100
    answered: dict[TranslationRequest, tuple[Any, torch.Tensor, torch.Tensor]] = {}
    lost: list[tuple[TranslationRequest, BaseException]] = []
    middle = threading.Event()

    def visitor(number: int) -> None:
        for one in expected[number::visitors]:
            try:
                groups = runner.groups(one, LABELS)
                made = runner.run(one)
                last = made.trace.sites[-1]
                answered[one] = made, made.trace[last].weights(head=0), groups[-1].picture(1).thumbnails
            except BaseException as error:
                lost.append((one, error))
            if len(answered) > len(expected) // 4:
                middle.set()

    threads = [threading.Thread(target=visitor, args=(number,)) for number in range(visitors)]
    for one in threads:
        one.start()
    assert middle.wait(TIMEOUT)
    ray.kill(ray.get_actor(replicas()[0], namespace="serve"))
    for one in threads:
        one.join(TIMEOUT)
    assert lost == []
    assert answered.keys() == set(expected)
    here = LocalRunner(ModelRegistry(), LRUCache(len(expected) + 1, 2**30))
    for request, (made, weights, thumbnails) in answered.items():
        alone = here.run(request)
        assert (made.target_ids, made.text) == (alone.target_ids, alone.text), request
        torch.testing.assert_close(weights, alone.trace[made.trace.sites[-1]].weights(head=0), rtol=0, atol=1e-5)
        local = here.groups(request, LABELS)[-1].picture(1).thumbnails
        torch.testing.assert_close(thumbnails.int(), local.int(), rtol=0, atol=1)


def test_the_size_of_a_pool_as_serve_run_gives_it() -> None:
    """`serve run serving.runners.ray_serve:pool min_replicas=2 gpus=0.5`: texts in a dictionary."""
    application = ray_serve.pool({"min_replicas": "2", "max_replicas": "8", "gpus": "0.5"})
    options = application._bound_deployment
    assert options._deployment_config.autoscaling_config.min_replicas == 2
    assert options._deployment_config.autoscaling_config.max_replicas == 8
    assert options.ray_actor_options["num_gpus"] == 0.5
    for wrong in ({"replicas": "2"}, {"min_replicas": "many"}):
        with pytest.raises(ValidationError):
            ray_serve.pool(wrong)
