"""The app against a real local Ray Serve of two replicas, one of which is killed while it is used.

`make serve-test` installs Ray and runs this.
"""

import asyncio
import itertools
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.pages.reading import claims
from tests.source_files import ROOT

pytest.importorskip("ray", reason="make serve-test installs Ray")

from pydantic import ValidationError
from streamlit.testing.v1 import AppTest

from benchmarks import load
from serving.compute.cache import LRUCache
from serving.compute.slots import AbandonedError, BusyError, OutOfTimeError, Slots, reset_singletons
from serving.metrics import Metrics
from serving.requests.hub import HubModelSpec, HubRequest, HubVisionSpec
from serving.requests.models import ModelRegistry, ShippedClassifier, ShippedTranslator
from serving.requests.request import Picture, RunRequest
from serving.requests.shipped import ClassificationRequest, TranslationRequest
from serving.runners import ray_serve
from serving.runners.ray_serve import _interruptible
from serving.runners.remote import RemoteRunner
from serving.runners.runner import LocalRunner
from tests.pages.reading import texts
from tests.serving.ray.conftest import Pool
from tests.serving.ray.process_model import ProcessModel, process
from ui.streamlit_internals.front_end import follow_link
from viz_core.hub.runs.run import RunInputs
from viz_core.pretrained import load_translator
from viz_core.pretrained.samples import GARMENTS, SCENES, drawn_picture
from viz_core.runtime.hooks import may_end

MODEL = ShippedTranslator("transformer-en-fr")
GREY, COLOUR = ShippedClassifier("vit-fashion-mnist"), ShippedClassifier("vit-cifar10")
TIMEOUT = 300.0
LABELS = defaultdict(lambda: "label")


def sentences() -> list[RunRequest[Any, Any]]:
    """Three sentences for each of a hundred visitors."""
    return [TranslationRequest(MODEL, text) for text in itertools.islice(load.sentences(), 300)]


def pictures() -> list[RunRequest[Any, Any]]:
    """Every drawn picture for the shipped models, and for one of the lab."""
    grey = [ClassificationRequest(GREY, Picture(name, drawn_picture(name))) for name in GARMENTS]
    colour = [ClassificationRequest(COLOUR, Picture(name, drawn_picture(name))) for name in SCENES]
    lab = HubVisionSpec(HubModelSpec("vit", offline=True))
    return [*grey, *colour, *(ClassificationRequest(lab, one.picture) for one in colour)]


@pytest.mark.parametrize(("requests", "visitors"), [(sentences, 100), (pictures, 4)])
def test_a_replica_dies_and_no_answer_is_wrong_or_lost(
    runner: RemoteRunner,
    replicas: Pool,
    requests: Callable[[], Sequence[RunRequest[Any, Any]]],
    visitors: int,
    folders: Path,
) -> None:
    """All visitors ask at once; a replica is killed meanwhile. Every answer comes, and is that of a model here."""
    expected = list(requests())
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


@pytest.fixture
def on_the_pool(runner: RemoteRunner, folders: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    import streamlit as st

    monkeypatch.setenv("ATLAS_RUNNER", "serve")
    monkeypatch.setenv("ATLAS_MODEL_FOLDERS", str(folders))
    reset_singletons()
    st.cache_data.clear()
    yield
    reset_singletons()
    st.cache_data.clear()


def test_the_chapter_runs_on_the_pool(replicas: Pool, on_the_pool: None) -> None:
    """The Transformer's page, before and after a replica dies: the same translation, and every claim holds."""
    app = AppTest.from_file(str(ROOT / "ui" / "app" / "main.py"), default_timeout=TIMEOUT)
    follow_link(app, "transformer").run()
    for text in ("He is at home.", "She reads a good book."):
        app.text_input(key="t-text").set_value(text).run()
        assert not app.exception
        translated = load_translator(MODEL.name, device="cpu").translate(text).text
        assert translated in texts(app)
        assert len(claims(app)) >= 4
        assert all(mark.startswith(":green[") for mark in claims(app))
        replicas.kill_one()


def test_questions_go_where_a_large_model_is_loaded(runner: RemoteRunner, replicas: Pool) -> None:
    """Every machine has the models that ship: questions about them may go anywhere."""
    assert (
        HubModelSpec("t5").affinity
        == HubModelSpec("t5", offline=True).affinity
        != HubModelSpec("t5", revision="v2").affinity
    )
    assert MODEL.affinity == ""
    for where in ("here", "there"):
        first = runner.evaluate_model(ProcessModel(where), process)
        time.sleep(1.0)  # until the pool has heard of it: to ask whether it has would load the model elsewhere too
        assert {runner.evaluate_model(ProcessModel(where), process) for _ in range(20)} == {first}


def test_a_question_is_taken_back_when_its_time_is_over(runner: RemoteRunner) -> None:
    """The slot is free again at once; the pool goes on to others."""
    slots = Slots(1, 10, 0.6, Metrics())

    slow = [
        HubRequest(HubModelSpec("gpt2", offline=True), RunInputs(f"The cat {number}", max_new_tokens=256))
        for number in range(40)
    ]
    job = slots.submit("run", lambda: [runner.run(one) for one in slow])
    while not job.wait(0.1):
        pass
    with pytest.raises(OutOfTimeError):
        job.result()
    assert runner.run(TranslationRequest(MODEL, "It is time.")).text


def test_without_a_pool_a_question_ends_as_busy(runner: RemoteRunner, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_serve, "APPLICATION", "not-there")
    monkeypatch.setattr(ray_serve, "_TIMEOUT", 0.5)
    with pytest.raises(BusyError):
        ray_serve.on_serve("auto", LRUCache(8, 2**24)).run(TranslationRequest(MODEL, "Go."))


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


def test_work_that_nobody_wants_any_more_ends_between_two_steps() -> None:
    steps, ended = threading.Event(), threading.Event()

    def work() -> None:
        try:
            while True:
                steps.set()
                time.sleep(0.01)
                may_end()
        except AbandonedError:
            ended.set()
            raise

    async def request_and_leave() -> None:
        task = asyncio.create_task(_interruptible(work))
        while not steps.is_set():
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(ended.wait, TIMEOUT)

    asyncio.run(request_and_leave())
