"""Tasks of TransformerLens and BertViz: the same results, in as many lines as docs/peers.md says."""

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
DOCUMENT = (ROOT / "docs" / "peers.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("package", "tasks"),
    [("transformer_lens", "tests.viz_core.circuits.peer_tasks"), ("bertviz", "tests.viz_core.view.bertviz_tasks")],
)
def test_tasks_of_peers_give_the_same(package: str, tasks: str) -> None:
    if not (PACKAGES / package).is_dir() and not os.environ.get("CI"):
        pytest.skip(f"{package} is not in .venv/lens: `make test-slow` puts it there")
    environment = {**os.environ, "PYTHONPATH": str(PACKAGES)}
    command = [sys.executable, "-m", tasks]
    run = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout.splitlines()[-1])
    for task, each in found.items():
        assert each["difference"] < 1e-5, task
    section = next(part for part in DOCUMENT.split("\n## ") if f"{tasks.replace('.', '/')}.py" in part)
    rows = re.findall(r"^\| ([^|]+) \| (\d+) \| (\d+) \|", section, re.MULTILINE)
    assert rows == [(task, str(each["there"]), str(each["here"])) for task, each in found.items()]
