"""Where models run, and what is asked of an installation before what an extra brings is used."""

import importlib.metadata
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

from viz_core.runtime.device import available_devices, best_device, find_device, parallel_map
from viz_core.runtime.hooks import interruptible, may_end
from viz_core.runtime.packages import require


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """A machine with a processor alone; tests add what they like."""
    monkeypatch.delenv("ATLAS_DEVICE", raising=False)
    have(monkeypatch)
    return monkeypatch


def have(monkeypatch: pytest.MonkeyPatch, cuda: int = 0, mps: bool = False) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)


@pytest.mark.parametrize(
    ("cuda", "mps", "devices", "best"),
    [
        (0, False, ("cpu",), "cpu"),
        (0, True, ("mps", "cpu"), "mps"),
        (1, False, ("cuda", "cpu"), "cuda"),
        (2, True, ("cuda", "mps", "cpu"), "cuda"),
    ],
)
def test_the_best_device(machine, cuda, mps, devices, best):
    have(machine, cuda, mps)
    assert available_devices() == devices
    assert best_device() == torch.device(best)


@pytest.mark.parametrize(("wanted", "found"), [("cpu", "cpu"), (" CPU ", "cpu"), ("cuda:1", "cuda:1"), ("", "cuda")])
def test_the_environment_overrides(machine: pytest.MonkeyPatch, wanted: str, found: str) -> None:
    have(machine, cuda=2)
    machine.setenv("ATLAS_DEVICE", wanted)
    assert best_device() == torch.device(found)


@pytest.mark.parametrize("wanted", ["cuda", "cuda:0", "mps", "meta", "cpu:5"])
def test_an_absent_device_is_named_with_those_there_are(machine: pytest.MonkeyPatch, wanted: str) -> None:
    with pytest.raises(ValueError, match=f"device='{wanted}' is not on this machine; it has cpu"):
        find_device(wanted)
    machine.setenv("ATLAS_DEVICE", wanted)
    with pytest.raises(ValueError, match=f"ATLAS_DEVICE='{wanted}' is not on this machine; it has cpu"):
        best_device()
    have(machine, cuda=2)
    assert find_device("cuda:1") == torch.device("cuda", 1)
    with pytest.raises(ValueError, match="device='cuda:2' is not on this machine; it has cuda and cpu"):
        find_device("cuda:2")


@pytest.fixture(params=[1, 4])
def cores(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("os.cpu_count", lambda: request.param * torch.get_num_threads())
    return int(request.param)


def test_results_come_in_the_order_of_the_items(cores: int) -> None:
    met = threading.Barrier(cores, timeout=60)  # nobody goes on until as many as there are cores have begun

    def work(item: int) -> tuple[int, str]:
        met.wait()
        return item * item, threading.current_thread().name

    results, names = zip(*parallel_map(work, range(4)), strict=True)
    assert results == (0, 1, 4, 9)
    assert len(set(names)) == cores


def test_whoever_asked_may_end_it(cores: int) -> None:
    """The check of the asker's context runs in every thread."""

    def check() -> None:
        raise TimeoutError

    with interruptible(check), pytest.raises(TimeoutError):
        parallel_map(lambda _: may_end(), range(3))
    parallel_map(lambda _: may_end(), range(3))


def test_what_is_missing_or_too_old_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """By an installation of somebody who has an older transformers."""
    there = {"transformers": "4.57.1", "huggingface-hub": "2.4.0", "streamlit": "1.67.2"}
    of_hub = ("transformers<6,>=5.20", "huggingface-hub<3,>=2", "tqdm>=4.66")
    of_app = ("streamlit<2,>=1.67; extra == 'app'", "colorama; (sys_platform == 'abacus') and extra == 'app'")

    def version(name: str) -> str:
        if name not in there:
            raise importlib.metadata.PackageNotFoundError(name)
        return there[name]

    requires = ["torch>=2.7", *(f"{each}; extra == 'hub'" for each in of_hub), *of_app]
    monkeypatch.setattr("viz_core.runtime.packages.requires", lambda _: requires)
    monkeypatch.setattr("viz_core.runtime.packages.version", version)
    uncached = require.__wrapped__
    uncached("app")
    uncached("hub", "huggingface-hub")
    with pytest.raises(ImportError) as refused:
        uncached("hub")
    assert str(refused.value) == (
        "expected transformers<6,>=5.20 (4.57.1 is installed), tqdm>=4.66 (none is installed): "
        "pip install 'attention-atlas[hub]'"
    )


@pytest.mark.slow
@pytest.mark.parametrize("device", ["standin", *(["cuda"] if torch.cuda.is_available() else [])])
def test_all_of_the_library_on_an_accelerator_equals_the_cpu(device: str) -> None:
    """On a stand-in always, on a GPU where there is one; in a process of its own, where a stand-in stays for good."""
    command = [sys.executable, "-m", "tests.viz_core.accelerator.compare", device]
    root = Path(__file__).resolve().parents[3]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-2000:]}"
