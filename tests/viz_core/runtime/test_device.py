"""Where models run, and what is asked of an installation before what an extra brings is used."""

import ctypes
import importlib.metadata
import os
import sys
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from viz_core import instrument, load_hub
from viz_core.hub.load import import_transformers
from viz_core.runtime.device import (
    available_devices,
    best_device,
    describe_device,
    find_device,
    parallel_map,
    return_freed_memory,
    reuse_freed_memory,
)
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
def test_the_best_device(
    machine: pytest.MonkeyPatch, cuda: int, mps: bool, devices: tuple[str, ...], best: str
) -> None:
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
    with pytest.raises(ValueError, match="is not a device; this machine has cuda and cpu"):
        find_device("cuda:x")


def test_descriptions(machine: pytest.MonkeyPatch) -> None:
    machine.setattr(torch.cuda, "get_device_name", lambda device: f"Card {device.index}")
    assert describe_device(torch.device("cuda", 1)) == "Card 1"
    assert describe_device(torch.device("mps")) == "Apple GPU"
    machine.setattr(os, "cpu_count", lambda: 2)
    assert describe_device(torch.device("cpu")) == "CPU, 2 cores"


def test_malloc_is_set_on_linux_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """By the numbers of malloc.h: M_MMAP_MAX, M_TRIM_THRESHOLD and M_TOP_PAD, or M_MMAP_THRESHOLD."""
    options: dict[int, int] = {}
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace(mallopt=options.__setitem__))
    reuse_freed_memory()
    assert options == {-4: 0, -1: 2**31 - 1, -2: 256 * 2**20}
    options.clear()
    return_freed_memory()
    assert options == {-3: 2**20}

    def missing(name: str) -> None:
        raise OSError(name)

    for library in (lambda _: SimpleNamespace(), missing):  # a C library without the call is no error
        monkeypatch.setattr(ctypes, "CDLL", library)
        reuse_freed_memory()
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(ctypes, "CDLL", lambda _: pytest.fail("no library should be opened"))
    reuse_freed_memory()


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


def test_what_one_raises_is_raised(cores: int) -> None:
    with pytest.raises(ZeroDivisionError):
        parallel_map(lambda item: 1 / item, [2, 1, 0])


def test_whoever_asked_may_end_it(cores: int) -> None:
    """The check of the asker's context runs in every thread."""

    class EndedError(Exception):
        pass

    def check() -> None:
        raise EndedError

    with interruptible(check), pytest.raises(EndedError):
        parallel_map(lambda _: may_end(), range(3))
    parallel_map(lambda _: may_end(), range(3))


THERE = {"streamlit": "1.67.2", "transformers": "4.57.1", "huggingface-hub": "2.4.0"}
REQUIRES = [
    "torch>=2.7",
    "transformers<6,>=5.20; extra == 'hub'",
    "huggingface-hub<3,>=2; extra == 'hub'",
    "tqdm>=4.66; extra == 'hub'",
    "streamlit<2,>=1.67; extra == 'app'",
    "colorama; (sys_platform == 'abacus') and extra == 'app'",
]


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An installation by somebody who has an older transformers."""

    def version(name: str) -> str:
        if name not in THERE:
            raise importlib.metadata.PackageNotFoundError(name)
        return THERE[name]

    monkeypatch.setattr("viz_core.runtime.packages.requires", lambda _: REQUIRES)
    monkeypatch.setattr("viz_core.runtime.packages.version", version)
    require.cache_clear()
    yield
    require.cache_clear()


@pytest.mark.usefixtures("installed")
def test_what_is_missing_or_too_old_is_named() -> None:
    require("app")
    require("hub", "huggingface-hub")
    with pytest.raises(ImportError) as refused:
        require("hub")
    assert str(refused.value) == (
        "expected transformers<6,>=5.20 (4.57.1 is installed), tqdm>=4.66 (none is installed): "
        "pip install 'attention-atlas[hub]'"
    )


@pytest.mark.usefixtures("installed")
@pytest.mark.parametrize("use", [lambda: load_hub("org/model"), lambda: instrument(torch.nn.Linear(2, 2))])
def test_whoever_needs_transformers_is_told_how_to_get_it(use: Any) -> None:
    with pytest.raises(
        ImportError, match=r"expected transformers<6,>=5.20 \(4.57.1 is.*pip install 'attention-atlas\[hub\]'"
    ):
        use()


def test_a_checkout_was_not_installed_and_is_not_asked() -> None:
    import_transformers()
