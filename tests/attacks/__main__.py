"""Try everything, for long: writes docs/attacks.md and the tables of docs/security.md. Run it with make attacks."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.attacks import floods, mixed_use, soak

DOCS = Path(__file__).resolve().parents[2] / "docs"
TRIES, LOAD = DOCS / "attacks.md", DOCS / "security.md"
CASES = "40"  # of messages in any order; continuous integration tries few


def main() -> int:
    """The exit status of pytest, or 1. What takes long is tried in any case, so that all tables are written."""
    command = [sys.executable, "-m", "pytest", "-q", "-m", "attack"]
    command += ["-p", "tests.attacks.record", f"--attacks-to={TRIES}"]
    command += ["-n", str(os.cpu_count() or 1), "--dist", "loadfile", "--no-loadscope-reorder", *sys.argv[1:]]
    ended = subprocess.run(command, env=os.environ | {"ATTACK_CASES": CASES}, check=False).returncode
    flooded, prompt = floods.main()
    write("floods", floods.table(flooded))
    lines, whole = soak.main()
    write("soak", soak.table(lines))
    used, unharmed = mixed_use.main()
    write("mixed use", mixed_use.table(used))
    return ended or int(not (whole and prompt and unharmed))


def write(name: str, table: str) -> None:
    """Put a table in its place in docs/security.md."""
    text, start = LOAD.read_text(encoding="utf-8"), f"<!-- {name}: written by `make attacks` -->"
    before, after = text.split(start)[0], text.split(f"<!-- end of {name} -->")[1]
    LOAD.write_text(f"{before}{start}\n{table}\n<!-- end of {name} -->{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
