"""Tasks of TransformerLens: the same results, in as many lines as docs/peers.md says."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
PACKAGES = Path(sys.prefix) / "lens"


def test_tasks_of_transformer_lens_give_the_same() -> None:
    if not PACKAGES.is_dir() and not os.environ.get("CI"):
        pytest.skip("TransformerLens is not in .venv/lens: `make test` puts it there")
    command = [sys.executable, "-m", "tests.viz_core.circuits.peer_tasks"]
    environment = {**os.environ, "PYTHONPATH": str(PACKAGES)}
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout.splitlines()[-1])
    for task, each in found.items():
        assert each["difference"] < 1e-5, task
    rows = re.findall(
        r"^\| ([^|]+) \| (\d+) \| (\d+) \|", (ROOT / "docs" / "peers.md").read_text("utf-8"), re.MULTILINE
    )
    assert rows == [(task, str(each["there"]), str(each["here"])) for task, each in found.items()]
