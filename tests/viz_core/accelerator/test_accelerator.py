"""All of the library on an accelerator equals the CPU: on a stand-in always, on a GPU where there is one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[3]
DEVICES = ["standin", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.mark.parametrize("device", DEVICES)
def test_everything_runs_on_an_accelerator_and_equals_the_cpu(device: str) -> None:
    """In a process of its own: the stand-in registers a device of torch for good."""
    command = [sys.executable, "-m", "tests.viz_core.accelerator.compare", device]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{done.stdout[-4000:]}\n{done.stderr[-2000:]}"


def test_a_tensor_left_on_the_cpu_is_an_error() -> None:
    code = (
        "from tests.viz_core.accelerator.standin import MixedDevicesError, register\n"
        "import torch\n"
        "device = register()\n"
        "try:\n"
        "    torch.ones(2, device=device) + torch.ones(2)\n"
        "except MixedDevicesError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "aten::add: a CPU tensor (2,) meets tensors of the device\n"
