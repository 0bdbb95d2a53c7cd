"""Plant faults, one at a time, and say which of them the tests notice.

`python -m tests.faults NAME [NAME ...]` reads tests/faults/NAME.toml (without a name: all of them). Each [[fault]] has
a `file`, the `old` text, which occurs once in it, the `new` text, the `tests` that should notice and `what` it breaks.
The fault is planted in a temporary copy of the tree; pytest stops there at the first failure. A fault that goes
unnoticed is MISSED, and the exit status is 1.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LISTS = ROOT / "tests" / "faults"
# pytest's exit status where no test was found or the command line is wrong: the list is out of date.
_NOTHING_RAN = (4, 5)


def copy_tree(to: Path) -> None:
    """Copy what git tracks, or would track; the virtual environment is linked."""
    listed = subprocess.check_output(["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, text=True)
    for name in filter(None, listed.splitlines()):
        if (ROOT / name).is_file():
            (to / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, to / name)
    (to / ".venv").symlink_to(ROOT / ".venv")


def planted(tree: Path, fault: dict[str, object]) -> str:
    """Return "caught" or why not, with the fault in the copy for as long as the tests run."""
    path = tree / str(fault["file"])
    if not path.is_file():
        return f"OUT OF DATE: no file {fault['file']}"
    text = path.read_text()
    if text.count(str(fault["old"])) != 1:
        return f"OUT OF DATE: the old text occurs {text.count(str(fault['old']))} times"
    path.write_text(text.replace(str(fault["old"]), str(fault["new"])))
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "--no-header", *fault["tests"]]  # type: ignore[misc]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    try:
        run = subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True, timeout=900)
    except subprocess.TimeoutExpired:
        return "caught (the tests did not end)"
    finally:
        path.write_text(text)
    if run.returncode in _NOTHING_RAN:
        return f"OUT OF DATE: {run.stdout.strip().splitlines()[-1:]}"
    if run.returncode == 0:
        return "MISSED"
    failed = [line for line in run.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return f"caught by {failed[0].split(' - ')[0].split(' ', 1)[1]}" if failed else "caught"


def main(names: list[str]) -> int:
    lists = [LISTS / f"{name}.toml" for name in names] or sorted(LISTS.glob("*.toml"))
    missed = 0
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder)
        copy_tree(tree)
        for path in lists:
            faults = tomllib.loads(path.read_text())["fault"]
            results = []
            for number, fault in enumerate(faults, start=1):
                results.append(planted(tree, fault))
                print(f"{path.stem} {number:2d} {fault['what']}: {results[-1]}", flush=True)
            caught = sum(result.startswith("caught") for result in results)
            missed += len(results) - caught
            print(f"{path.stem}: {caught} of {len(results)} faults caught", flush=True)
    return min(missed, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
