"""Tests with the oldest, the newest and some versions between of transformers that pyproject.toml allows.

`make test-ranges` runs this for a sample of tests, or for those in ARGS. Each version is installed with what it needs
into a folder of its own, which comes before the environment on Python's path and is removed at the end. torch stays
the installed one: other builds of it take gigabytes.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
_CLIENT = ("huggingface-hub<2", "httpx", "httpcore", "h11")  # of the Hub, for versions before 5.20
VERSIONS = {
    "4.57.6": ("huggingface-hub<1", "tokenizers<0.23"),
    "5.0.0": (*_CLIENT, "tokenizers<0.23"),
    "5.15.0": (*_CLIENT, "tokenizers<0.23"),
    "5.24.0": (),
}
"""Versions of transformers that docs/library.md says are tested, with what they need in other versions than we do."""
SAMPLE = ("tests/viz_core/hub/test_layouts.py", "tests/viz_core/lab/test_sinks.py")


def allowed() -> Requirement:
    """What pyproject.toml asks of transformers."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return next(
        each for each in map(Requirement, project["optional-dependencies"]["hub"]) if each.name == "transformers"
    )


def run(version: str, tests: list[str]) -> int:
    """Install a version into a folder and return the exit status of the tests with it."""
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--no-deps", "--target", folder]
        subprocess.run([*pip, f"transformers=={version}", *VERSIONS[version]], check=True)
        environment = {**os.environ, "PYTHONPATH": folder}
        shown = (
            "import torch, transformers; print('transformers', transformers.__version__, 'torch', torch.__version__)"
        )
        subprocess.run([sys.executable, "-c", shown], env=environment, check=True)
        pytest = [sys.executable, "-m", "pytest", "-q", "-p", "tests.library_only", *tests]
        return subprocess.run(pytest, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(max([run(version, sys.argv[1:] or list(SAMPLE)) for version in VERSIONS]))
