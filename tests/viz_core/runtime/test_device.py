"""Where models run: the fastest there is, or what a person asked for, or a sentence about why not."""

from __future__ import annotations

import os

import pytest
import torch

from viz_core.runtime.device import available_devices, best_device, describe_device, find_device


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


def test_an_index_past_the_last_device_is_absent(machine: pytest.MonkeyPatch) -> None:
    have(machine, cuda=2)
    assert find_device("cuda:1") == torch.device("cuda", 1)
    with pytest.raises(ValueError, match="device='cuda:2' is not on this machine; it has cuda and cpu"):
        find_device("cuda:2")


@pytest.mark.parametrize("wanted", ["gpu", "cuda:x", "../cpu"])
def test_what_is_no_device_is_said_to_be_none(machine: pytest.MonkeyPatch, wanted: str) -> None:
    with pytest.raises(ValueError, match="is not a device; this machine has cpu"):
        find_device(wanted)


def test_descriptions(machine: pytest.MonkeyPatch) -> None:
    machine.setattr(torch.cuda, "get_device_name", lambda device: f"Card {device.index}")
    assert describe_device(torch.device("cuda", 1)) == "Card 1"
    assert describe_device(torch.device("mps")) == "Apple GPU"
    machine.setattr(os, "cpu_count", lambda: 2)
    assert describe_device(torch.device("cpu")) == "CPU, 2 cores"
