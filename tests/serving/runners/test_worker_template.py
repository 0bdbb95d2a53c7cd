"""Workers are copies of one process, and share its memory."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from serving.models.model_spec import NoModel, ShippedTranslator
from serving.requests.shipped import TranslationRequest
from serving.runners import worker_template
from serving.runners.worker_pool import WorkerPool
from serving.runners.worker_template import CopiedProcess, can_copy
from tests.serving.runners.worker_functions import process, run_program

MODEL = ShippedTranslator("transformer-en-fr")
pytestmark = pytest.mark.skipif(not can_copy(), reason="workers are not copied on this system")


@pytest.fixture(scope="module")
def pool() -> Iterator[WorkerPool]:
    made = WorkerPool(2)
    yield made
    made.close()


def memory(pid: int, field: str) -> int:
    """Kilobytes of a process: "Rss" with what it shares, "Private_Dirty" of its own."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{field}:"))


@pytest.mark.attack("memory")
def test_workers_share_one_copy_of_the_weights(pool: WorkerPool) -> None:
    for number in range(4):
        pool.execute("outline", TranslationRequest(MODEL, f"{number} old dogs."))
    for worker in pool.workers:
        assert isinstance(worker.process, CopiedProcess)
        own, whole = (memory(worker.process.pid, field) for field in ("Private_Dirty", "Rss"))
        assert own < whole / 3


def test_a_copy_can_wait_for_programs_of_its_own(pool: WorkerPool) -> None:
    """The template leaves its ended copies to the system; a copy that did so would lose exit statuses."""
    assert pool.workers[0].execute("evaluate_model", NoModel(), run_program) == 7


@pytest.mark.attack("disorder")
def test_the_template_may_die(pool: WorkerPool) -> None:
    worker, template = pool.workers[0], pool._template
    assert template is not None
    assert template._process is not None
    template._process.kill()
    template._process.wait()
    before = worker.process
    assert worker.execute("evaluate_model", NoModel(), process) == before.pid
    before.kill()
    assert before.wait(60) == 0
    assert worker.execute("evaluate_model", NoModel(), process) not in (before.pid, None)
    assert worker.process.poll() is None


def test_a_template_that_does_not_answer_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worker_template, "_TIMEOUT", 0.01)
    template = worker_template.WorkerTemplate({"PATH": "/nowhere"})
    assert template.copy(0) is None
    assert template._process is not None
    assert template._process.poll() is not None
