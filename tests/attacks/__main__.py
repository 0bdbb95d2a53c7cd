"""Try every attack with many cases, flood a server, open costly links: `make attacks` writes docs/security.md."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.attacks import floods, links

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "security.md"
START, END = "<!-- floods: written by `make attacks` -->", "<!-- end of floods -->"
CASES = "40"  # of messages in any order; continuous integration tries few


def main() -> int:
    """Return the exit status of pytest, or 1 if others waited or a link cost too much; tables are written anyway."""
    command = [sys.executable, "-m", "pytest", "-q", "-m", "attack"]
    command += ["-n", str(os.cpu_count() or 1), "--dist", "loadfile", "--no-loadscope-reorder", *sys.argv[1:]]
    ended = subprocess.run(command, env=os.environ | {"ATTACK_CASES": CASES}, check=False).returncode
    flooded, prompt = floods.main()
    costs, cheap = links.main()
    text = DOCUMENT.read_text(encoding="utf-8")
    before, after = text.split(START)[0], text.split(END)[1]
    DOCUMENT.write_text(f"{before}{START}\n{floods.table(flooded)}\n\n{costs}\n{END}{after}", encoding="utf-8")
    return ended or int(not (prompt and cheap))


if __name__ == "__main__":
    sys.exit(main())
