"""timm and torchvision as they are: every layer seen by name, exactly, and unchanged; tasks of peers done here."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.source_files import ROOT

PEERS = Path(sys.prefix) / "peers"


@pytest.fixture(scope="module")
def seen() -> dict[str, Any]:
    if not PEERS.is_dir() and not os.environ.get("CI"):
        pytest.skip("timm and torchvision are not in .venv/peers: `make test-slow` puts them there")
    return found_by("tests.viz_core.trace.peer_models", PEERS)


def found_by(module: str, packages: Path) -> dict[str, Any]:
    """What a program prints that is run with these packages on its path."""
    environment = {**os.environ, "PYTHONPATH": str(packages)}
    command = [sys.executable, "-m", module]
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


def test_what_mixes_tokens_is_recorded_or_named(seen: dict[str, Any]) -> None:
    assert len(seen["architectures"]) > 30
    table = (ROOT / "docs" / "architectures.md").read_text(encoding="utf-8").splitlines()
    for name, each in seen["architectures"].items():
        assert each["rows"] == each["expected"] > 0, name
        assert each["covered"] == each["recorded"], name
        assert all(reason.rstrip(".") in each["warned"] for reason in each["reasons"]), name
        assert bool(each["warned"]) == bool(each["reasons"]), name
        assert each["row"] in table, each["row"]


@pytest.mark.parametrize(
    ("package", "tasks"),
    [("transformer_lens", "tests.viz_core.circuits.peer_tasks"), ("bertviz", "tests.viz_core.view.bertviz_tasks")],
)
def test_tasks_of_peers_give_the_same(package: str, tasks: str) -> None:
    packages = PEERS.with_name("lens")
    if not (packages / package).is_dir() and not os.environ.get("CI"):
        pytest.skip(f"{package} is not in .venv/lens: `make test-slow` puts it there")
    found = found_by(tasks, packages)
    assert all(each["difference"] < 1e-5 for each in found.values()), found
    parts = (ROOT / "docs" / "peers.md").read_text(encoding="utf-8").split("\n## ")
    section = next(part for part in parts if f"{tasks.replace('.', '/')}.py" in part)
    rows = re.findall(r"^\| ([^|]+) \| (\d+) \| (\d+) \|", section, re.MULTILINE)
    assert rows == [(task, str(each["there"]), str(each["here"])) for task, each in found.items()]
