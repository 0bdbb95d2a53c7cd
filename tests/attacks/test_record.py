"""The documents that a run of the attacks writes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.attacks import __main__ as run
from tests.attacks import record

ROOT = Path(__file__).resolve().parents[2]


def test_each_document_has_its_table() -> None:
    """And the page for people holds no table of tries."""
    tries, load = run.TRIES.read_text(encoding="utf-8"), run.LOAD.read_text(encoding="utf-8")
    assert tries.index(record.START) < tries.index(record.END)
    for name in ("floods", "soak", "mixed use"):
        assert load.index(f"<!-- {name}: written by `make attacks` -->") < load.index(f"<!-- end of {name} -->")
    assert record.START not in load
    assert f"]({run.TRIES.name})" in load
    assert f"]({run.LOAD.name})" in tries


def test_a_run_writes_a_row_for_each_try(tmp_path: Path) -> None:
    document = tmp_path / "attacks.md"
    document.write_text(f"before\n{record.START}\nold\n{record.END}\nafter\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "--noconftest", "-p", "no:cacheprovider"]
    command += [
        "-m",
        "attack",
        "-p",
        "tests.attacks.record",
        f"--attacks-to={document}",
        "tests/serving/test_machine.py",
    ]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    ended = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout
    lines = document.read_text(encoding="utf-8").splitlines()
    assert (lines[0], lines[-1]) == ("before", "after")
    assert "old" not in lines
    assert any(line.startswith("| settings | ") and " | held | " in line for line in lines)
