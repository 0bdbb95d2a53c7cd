"""Tests with the oldest, the newest and some versions between of the packages that pyproject.toml allows ranges of.

`make test-ranges` runs a sample of tests with each version of transformers. ARGS names other versions, other tests, or
both, as in `ARGS="torch==2.9.1 tests/viz_core"`; a build of torch for Linux has about 6 GB. A version is installed into
a folder of its own, which comes before the environment on Python's path and is removed at the end. Two run at a time.
"""

import os
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]
_PINNED = "--no-deps"  # what a version needs is what the environment has, but for what is named
_CLIENT = ("huggingface-hub<2", "httpx", "httpcore", "h11")  # of the Hub, for versions before 5.20
VERSIONS = {
    "transformers==4.57.6": (_PINNED, "huggingface-hub<1", "tokenizers<0.23"),
    "transformers==5.0.0": (_PINNED, *_CLIENT, "tokenizers<0.23"),
    "transformers==5.15.0": (_PINNED, *_CLIENT, "tokenizers<0.23"),
    "transformers==5.24.0": (_PINNED,),
    "torch==2.9.1": (),  # with libraries of its own
    "torch==2.15.0": (),
}
"""Versions that docs/library.md says are tested, with what pip is given besides."""
SAMPLE = (
    *("tests/viz_core/hub/test_layouts.py", "tests/viz_core/lab/test_sinks.py", "tests/viz_core/hub/test_vision.py"),
    *("-k", "tokenizer or tokens or token_ids or architecture or two_spans or both_towers"),
)
"""Arguments of pytest: tests that build their models from what every one of these versions has."""


def allowed(package: str) -> Requirement:
    """What pyproject.toml asks of a package."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    lines = [*project["dependencies"], *project["optional-dependencies"]["hub"]]
    return next(each for each in map(Requirement, lines) if each.name == package)


def run(version: str, tests: list[str]) -> int:
    """Install a version into a folder and return the exit status of the tests with it, whose output comes whole."""
    (ROOT / "build").mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=ROOT / "build") as folder:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-compile", "--target", folder]
        subprocess.run([*pip, version, *VERSIONS[version]], check=True)
        shown = (
            "import torch, transformers; print('transformers', transformers.__version__, 'torch', torch.__version__)"
        )
        pytest = ["-m", "pytest", "-q", "-p", "tests.library_only", "-p", "no:cacheprovider", *tests]
        environment = {**os.environ, "PYTHONPATH": folder}
        for arguments in (["-c", shown], pytest):
            command = [sys.executable, *arguments]
            ended = subprocess.run(command, cwd=ROOT, env=environment, text=True, capture_output=True, check=False)
            print(ended.stdout, ended.stderr, sep="", flush=True)
            if ended.returncode:
                return ended.returncode
    return 0


if __name__ == "__main__":
    versions = [each for each in sys.argv[1:] if "==" in each]
    tests = [each for each in sys.argv[1:] if "==" not in each] or list(SAMPLE)
    unknown = [each for each in versions if each not in VERSIONS]
    if unknown:
        sys.exit(f"expected versions of {', '.join(VERSIONS)}, got {', '.join(unknown)}")
    versions = versions or [each for each in VERSIONS if each.startswith("transformers==")]
    with ThreadPoolExecutor(max_workers=2) as threads:
        sys.exit(max(threads.map(run, versions, [tests] * len(versions))))
