"""The app against a real local Ray Serve of two replicas, one of which is killed while it is used.

`make serve-test` installs Ray and runs this.
"""

import itertools
import threading
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("ray", reason="make serve-test installs Ray")

from pydantic import ValidationError

from benchmarks import load
from serving.compute.cache import LRUCache
from serving.requests.models import ModelRegistry, ShippedClassifier, ShippedTranslator
from serving.requests.request import RunRequest
from serving.requests.shipped import TranslationRequest
from serving.runners import ray_serve
from serving.runners.remote import RemoteRunner
from serving.runners.runner import LocalRunner
from tests.serving.ray.conftest import Pool

MODEL = ShippedTranslator("transformer-en-fr")
GREY, COLOUR = ShippedClassifier("vit-fashion-mnist"), ShippedClassifier("vit-cifar10")
TIMEOUT = 300.0
LABELS = defaultdict(lambda: "label")


def sentences() -> list[RunRequest[Any, Any]]:
    """Three sentences for each of a hundred visitors."""
    return [TranslationRequest(MODEL, text) for text in itertools.islice(load.sentences(), 300)]


def test_a_replica_dies_and_no_answer_is_wrong_or_lost(runner: RemoteRunner, replicas: Pool, folders: Path) -> None:
    """All visitors ask at once; a replica is killed meanwhile. Every answer comes, and is that of a model here."""
    expected, visitors = sentences(), 100
    answered: dict[RunRequest[Any, Any], tuple[Any, torch.Tensor, torch.Tensor]] = {}
    lost: list[tuple[RunRequest[Any, Any], BaseException]] = []
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
    replicas.kill_one()
    for one in threads:
        one.join(TIMEOUT)
    assert lost == []
    assert answered.keys() == set(expected)
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("ATLAS_MODEL_FOLDERS", str(folders))
        here = LocalRunner(ModelRegistry(), LRUCache(len(expected) + 1, 2**30))
        for request, (made, weights, thumbnails) in answered.items():
            alone = here.run(request)
            for name in ("target_ids", "tokens", "target_tokens", "label", "text"):
                assert getattr(made, name, None) == getattr(alone, name, None), (request, name)
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
