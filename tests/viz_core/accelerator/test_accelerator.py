"""All of the library on an accelerator equals the CPU: on a stand-in always, on a GPU where there is one."""

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
