"""timm and torchvision as they are: every layer seen by name, exactly, and nothing that they compute is changed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[3]
PEERS = Path(sys.prefix) / "peers"


@pytest.fixture(scope="module")
def seen() -> dict[str, Any]:
    if not PEERS.is_dir() and not os.environ.get("CI"):
        pytest.skip("timm and torchvision are not in .venv/peers: `make test` puts them there")
    command = [sys.executable, "-m", "tests.viz_core.trace.peer_models"]
    environment = {**os.environ, "PYTHONPATH": str(PEERS)}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return found


MODELS = ["timm ViT", "timm ViT, not fused", "timm BEiT, relative positions", "timm EVA, rotary positions"]


@pytest.mark.parametrize("mode", ["training", "evaluation"])
@pytest.mark.parametrize("model", [*MODELS, "torchvision ViT"])
def test_parity(model: str, mode: str, seen: dict[str, Any]) -> None:
    found = seen[f"{model}, {mode}"]
    assert found["sites"] == ["encoder.0.self", "encoder.1.self"]
    assert found["spread"] > 0.02, "maps that are all alike would prove nothing"
    assert found["difference"] < 1e-6
    assert found["same"]


def test_windows_with_an_axis_of_their_own(seen: dict[str, Any]) -> None:
    parts = ("window_attention", "grid_attention")
    assert seen["torchvision MaxViT"] == [
        f"encoder.{at}.1.{part}.self" for at in ("0.0", "1.0", "1.1") for part in parts
    ]
