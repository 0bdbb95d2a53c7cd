"""Models in worker processes: the same answers, and none is lost when a process dies; crew and batches."""

import subprocess
import sys
import threading
import time
import types
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch

from serving.compute.cache import LRUCache
from serving.compute.slots import AbandonedError, BusyError
from serving.requests.models import ModelRegistry, ModelSpec, NoModel, ShippedTranslator
from serving.requests.shipped import TranslationRequest
from serving.runners import worker, worker_pool
from serving.runners.crew import Crew
from serving.runners.remote import RemoteRunner
from serving.runners.runner import LocalRunner
from serving.runners.worker_pool import Worker, WorkerPool
from tests.serving.runners import worker_functions as work
from viz_core.lessons.transformer.layers import translation_residuals
from viz_core.pretrained import TextError, Translation, Translator
from viz_core.runtime.hooks import interruptible

MODEL = ShippedTranslator("transformer-en-fr")
CALM = TranslationRequest(MODEL, "He is calm.")
LABELS: dict[str, str] = defaultdict(lambda: "a label")
linux = pytest.mark.skipif(not worker.can_fork(), reason="workers are not forked on this system")


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    made = WorkerPool(2)
    made.execute("warm", CALM)
    yield made
    processes = [one.process for one in made.workers]
    made.close()
    for one in processes:
        one.join(60)
        assert not one.is_alive()
    with pytest.raises(BusyError):
        made.execute("outline", CALM)


@pytest.fixture
def runner(pool: WorkerPool) -> RemoteRunner:
    return RemoteRunner(pool.execute, LRUCache(100, 2**24))


def memory(pid: int, field: str) -> int:
    """Kilobytes of a process: "Rss" with what it shares, "Private_Dirty" of its own."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


def test_runs_weights_and_errors_are_those_of_a_local_model(runner: RemoteRunner) -> None:
    here = LocalRunner(ModelRegistry(), LRUCache(100, 2**24))
    for one in (CALM, TranslationRequest(MODEL, "She reads a good book.", 4)):
        expected, found = here.run(one), runner.run(one)
        assert (found.text, found.target_ids) == (expected.text, expected.target_ids)
        for site in expected.trace.sites:
            torch.testing.assert_close(found.trace[site].weights(), expected.trace[site].weights(), rtol=0, atol=1e-6)
        expected_maps, found_maps = here.groups(one, LABELS)[-1], runner.groups(one, LABELS)[-1]
        assert torch.equal(expected_maps.picture(1).thumbnails, found_maps.picture(1).thumbnails)
        residuals = runner.evaluate(one, translation_residuals)
        assert residuals == pytest.approx(here.evaluate(one, translation_residuals), abs=1e-5)
    with pytest.raises(TextError):
        runner.run(TranslationRequest(MODEL, " "))
    with pytest.raises(ValueError, match="nothing"):
        runner.load(ShippedTranslator("nothing"))
    with pytest.raises(RuntimeError, match="WordyError: this and that"):
        runner.evaluate(CALM, work.complain)
    with pytest.raises(RuntimeError, match="lambda"):
        runner.evaluate(CALM, work.refuse_to_cross)


@pytest.mark.attack("disorder")
def test_no_result_is_lost_when_a_worker_is_killed(pool: WorkerPool, runner: RemoteRunner) -> None:
    requests = [TranslationRequest(MODEL, f"The old dog and {number} cats are in the house.") for number in range(12)]
    translated: dict[TranslationRequest, str] = {}
    lost: list[BaseException] = []
    middle = threading.Event()

    def visitor(number: int) -> None:
        for one in requests[number::4]:
            try:
                translated[one] = runner.run(one).text
            except BaseException as error:
                lost.append(error)
            if len(translated) > 3:
                middle.set()

    before = [one.process.pid for one in pool.workers]
    visitors = [threading.Thread(target=visitor, args=(number,)) for number in range(4)]
    for one in visitors:
        one.start()
    assert middle.wait(300)
    pool.workers[0].process.kill()
    for one in visitors:
        one.join(300)
    assert lost == []
    here = LocalRunner(ModelRegistry(), LRUCache(100, 2**24))
    assert translated == {one: here.run(one).text for one in requests}
    assert pool.workers[0].execute("evaluate_model", MODEL, work.process) not in before
    assert pool.workers[1].execute("evaluate_model", MODEL, work.process) == before[1]


@pytest.mark.attack("disorder")
@pytest.mark.parametrize(("model", "times"), [(MODEL, 2), (NoModel(), 1), (work.LabModel(), 1)])
def test_a_call_that_reads_a_folder_and_kills_its_worker_is_not_repeated(
    pool: WorkerPool, tmp_path: Path, model: ModelSpec[Any], times: int
) -> None:
    attempts = tmp_path / "attempts"
    with pytest.raises(BusyError):
        pool.workers[0].execute("evaluate_model", model, work.note_and_die, str(attempts))
    assert attempts.read_text() == "x" * times
    with pytest.raises(ValueError, match="got '__init__'"):
        pool.execute("__init__", MODEL)


@pytest.mark.attack("disorder")
def test_work_that_nobody_waits_for_ends(pool: WorkerPool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two of its steps, or with its process where it never checks."""
    one, traces = pool.workers[1], tmp_path / "ended"
    before = one.execute("evaluate_model", MODEL, work.process)

    def start_and_leave(function: Callable[..., None], argument: object) -> None:
        end = time.monotonic() + 0.5
        with interruptible(work.leaving(lambda: time.monotonic() > end)), pytest.raises(AbandonedError):
            one.execute("evaluate_model", MODEL, function, argument)

    start_and_leave(work.wait_to_be_ended, str(traces))
    work.eventually(traces.exists)
    assert one.execute("evaluate_model", MODEL, work.process) == before
    monkeypatch.setattr(worker_pool, "_GRACE", 0.2)
    start_and_leave(work.sleep, 1e6)
    assert one.execute("evaluate_model", MODEL, work.process) != before


@linux
@pytest.mark.attack("memory")
def test_workers_share_one_copy_of_the_weights(pool: WorkerPool) -> None:
    for one in pool.workers:  # the pool may give all requests to one
        one.execute("outline", TranslationRequest(MODEL, "Two old dogs."))
    for one in pool.workers:
        own, whole = (memory(one.process.pid, field) for field in ("Private_Dirty", "Rss"))
        assert own < whole / 3
    assert pool.workers[0].execute("evaluate_model", NoModel(), work.run_program) == 7, "it can wait for a program"


@linux
@pytest.mark.attack("memory")
def test_a_worker_has_a_limit_of_memory(pool: WorkerPool) -> None:
    before = pool.workers[0].execute("evaluate_model", NoModel(), work.process)
    with pytest.raises(MemoryError):
        pool.workers[0].execute("evaluate_model", NoModel(), work.reserve_all)
    assert pool.workers[0].execute("evaluate_model", NoModel(), work.process) == before


@linux
@pytest.mark.attack("disorder")
def test_the_fork_server_may_die_and_its_workers_are_replaced(pool: WorkerPool) -> None:
    before = pool.workers[0].execute("evaluate_model", NoModel(), work.process)
    psutil.Process(before).parent().kill()
    work.eventually(lambda: not pool.workers[0].process or not pool.workers[0].process.is_alive())
    assert pool.workers[0].execute("evaluate_model", NoModel(), work.process) != before


def test_a_worker_does_not_run_the_script_of_streamlit(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process of a pool imports the file of `__main__`, which Streamlit replaces by the script of the visit."""
    for path in ("ui/app/main.py", "hosted.py"):
        script = types.ModuleType("__main__")
        script.__file__ = str(Path(path).resolve())
        monkeypatch.setitem(sys.modules, "__main__", script)
        alone = Worker(Crew())
        assert alone.execute("evaluate_model", NoModel(), work.has_streamlit) is False
        alone.close()


ABANDON = """
import os
from serving.requests.models import NoModel
from serving.runners.worker_pool import WorkerPool
from tests.serving.runners.worker_functions import process
if __name__ == "__main__":
    print(WorkerPool(1).execute("evaluate_model", NoModel(), process), flush=True)
    os.kill(os.getpid(), 9)
"""


@linux
def test_a_worker_ends_with_the_process_that_started_it() -> None:
    found = subprocess.run([sys.executable, "-c", ABANDON], stdout=subprocess.PIPE, check=False)
    work.eventually(lambda: not Path(f"/proc/{int(found.stdout)}").exists())


TINY = ShippedTranslator("tiny-en-fr")


def test_several_sentences_in_one_batch_become_what_each_becomes_alone(translator: Translator) -> None:
    """Also of several models, and with several beams."""
    sentences = [TranslationRequest(TINY, text) for text in ("Go.", "She has a red car.", "Go.", "Where is the cat?")]
    sentences += [TranslationRequest(ShippedTranslator(model), "Go.", beam) for model in "ab" for beam in (1, 4)]
    together = LocalRunner(lambda _model: translator, LRUCache(100, 2**24)).run_all(sentences)
    for one, made in zip(sentences, together, strict=True):
        assert isinstance(made, Translation)
        alone = translator.translate(one.text, beam=one.beam)
        assert (made.text, made.target_ids, made.complete) == (alone.text, alone.target_ids, alone.complete)
        # A float32 sum near -43 has steps of 4e-6, and which way it rounds depends on the batch and the processor.
        assert made.log_probability == pytest.approx(alone.log_probability, rel=1e-6)
        for call in alone.trace:
            torch.testing.assert_close(made.trace[call.site].weights(), call.weights(), rtol=0, atol=1e-6)
