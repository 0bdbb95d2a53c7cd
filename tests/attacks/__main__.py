"""Try everything, for long: writes docs/attacks.md and a table of docs/security.md. Run it with make attacks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.attacks import soak

DOCS = Path(__file__).resolve().parents[2] / "docs"
TRIES, LOAD = DOCS / "attacks.md", DOCS / "security.md"
START, END = "<!-- soak: written by `make attacks` -->", "<!-- end of soak -->"
CASES = "40"  # of messages in any order; continuous integration tries few


def main() -> int:
    """The exit status of pytest, or 1. What takes long is tried in any case, so that both tables are written."""
    command = [sys.executable, "-m", "pytest", "-q", "-m", "attack"]
    command += ["-p", "tests.attacks.record", f"--attacks-to={TRIES}"]
    command += ["-n", str(os.cpu_count() or 1), "--dist", "loadfile", "--no-loadscope-reorder", *sys.argv[1:]]
    ended = subprocess.run(command, env=os.environ | {"ATTACK_CASES": CASES}, check=False).returncode
    lines, whole = soak.main()
    text = LOAD.read_text(encoding="utf-8")
    before, after = text.split(START)[0], text.split(END)[1]
    LOAD.write_text(f"{before}{START}\n{soak.table(lines)}\n{END}{after}", encoding="utf-8")
    return ended or int(not whole)


if __name__ == "__main__":
    sys.exit(main())
