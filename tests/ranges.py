"""The library's tests with the lowest and the highest torch and transformers that pyproject.toml allows.

`make test-ranges` runs this, for all of tests/viz_core or for the files in ARGS. Each pair of versions is installed
into a folder of its own that comes before the environment on Python's path, and is removed at the end.
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
RANGED = ("torch", "transformers")


def ends() -> dict[str, list[str]]:
    """What pip installs at each end of the ranges: the lower bounds, and the latest versions within the ranges."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lines = [*project["dependencies"], *project["optional-dependencies"]["hub"]]
    ranges = [each for each in map(Requirement, lines) if each.name in RANGED]
    bounds = {each.name: next(one.version for one in each.specifier if one.operator == ">=") for each in ranges}
    return {"lowest": [f"{name}=={low}" for name, low in bounds.items()], "highest": [str(each) for each in ranges]}


def run(wanted: list[str], tests: list[str]) -> int:
    """Install these versions into a folder and return the exit status of the tests with them."""
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--target", folder, *wanted]
        subprocess.run(pip, check=True)
        environment = {**os.environ, "PYTHONPATH": folder}
        names = ", ".join(f"'{name}', {name}.__version__" for name in RANGED)
        subprocess.run(
            [sys.executable, "-c", f"import {', '.join(RANGED)}; print({names})"], env=environment, check=True
        )
        pytest = [sys.executable, "-m", "pytest", "-q", "-p", "tests.library_only", *tests]
        return subprocess.run(pytest, cwd=ROOT, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(max([run(wanted, sys.argv[1:] or ["tests/viz_core"]) for wanted in ends().values()]))
